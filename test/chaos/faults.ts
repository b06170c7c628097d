/** What chaos may do to a lab, drawn by chance. Each fault says what it did, and returns how it is undone if it lasts. */
import { setTimeout as delay } from 'node:timers/promises';
import { around, setCuts } from '../../lab/faults/cuts.ts';
import { losses, silences } from '../../lab/faults/losses.ts';
import { agentPattern, overload, pause } from '../../lab/faults/processes.ts';
import type { Lab } from '../../lab/lab.ts';
import { beginDoubled, type Doubled, endDoubled } from './doubled.ts';

/** Numbers by chance, the same for the same seed (mulberry32). */
export type Random = () => number;
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One of several, by chance. */
export function oneOf<T>(random: Random, all: readonly T[]): T {
  const chosen = all[Math.floor(random() * all.length)];
  if (chosen === undefined) throw new Error('nothing to choose from');
  return chosen;
}

/** Something that was done and is still so. */
export interface Standing {
  readonly what: string;
  readonly undo?: () => Promise<void>;
  /** When it is over by itself. Nobody waits for it before the end of the episode: other faults may come meanwhile. */
  readonly over?: Promise<void>;
}

/** What is so already; kept up to date by the faults. */
export interface Scene {
  /** Nodes and parts that are away now. */
  readonly lost: Set<string>;
  /** Gateway node -> when it was last kept from being heard. */
  readonly unheardAtMs: Map<string, number>;
  /** When two owners were made by two faults at once. */
  readonly doubled: Doubled[];
}

export const newScene = (): Scene => ({ lost: new Set(), unheardAtMs: new Map(), doubled: [] });

interface ChaosFault {
  /** How often it is drawn, beside the others. */
  readonly weight: number;
  /** Undefined when it cannot be done now: what was drawn is lost already, or would make two owners by two faults at once. */
  act(lab: Lab, random: Random, scene: Scene): Promise<Standing | undefined>;
}

const gateways = (lab: Lab): string[] => lab.status.nodes.filter(({ gateway }) => gateway).map(({ name }) => name);
const nodes = (lab: Lab): string[] => lab.status.nodes.map(({ name }) => name);
/**
 * Whether somebody is there to let the EIPs of a node go. If nobody is, a fault that keeps the other nodes from hearing it makes a second
 * owner, as docs/explanation/failover.md says: two faults at once, which are not done here.
 */
const hasAgent = (lab: Lab, node: string): Promise<boolean> =>
  lab.exec(node, ['curl', '-sS', '--fail', '--max-time', '1', agentReadyUrl]).then(
    () => true,
    () => false,
  );
/** Whether a node was not heard any more a moment ago: its agent is about to let go, and a kernel whose agent is stopped before would not. */
const isLettingGo = ({ unheardAtMs }: Scene, node: string): boolean =>
  performance.now() - (unheardAtMs.get(node) ?? -Infinity) < letGoMs;
// An owner that takes longer fails the test: that is as long as two may be seen.
const letGoMs = 1_000;
/** For how long the agent of an owner stands still: less and more than the lease of its kernel (26 s) and the grace (30 s). */
const stallsSeconds = [1, 5, 29, 35, 120] as const;
/** For how long it does while its tunnel is cut; for ever where it is killed. */
const doubledSeconds = [Infinity, Infinity, 5, 35] as const;
const agentReadyUrl = 'http://127.0.0.1:7790/readyz';
const controllerPattern = /main\S* controller/;
const parts = ['kube-apiserver', 'etcd'] as const;
const device = 'egress.vxlan';

/** What foreign hands may do without opening a hole; see docs/explanation/promises.md for what does. */
const damages: readonly { readonly what: string; readonly isUnheard: boolean; readonly script: string }[] = [
  { what: 'neighbours flushed', isUnheard: true, script: `ip neighbour flush dev ${device} nud permanent` },
  { what: 'EIPs taken off', isUnheard: false, script: 'ip address flush dev egw-eip' },
  { what: 'tunnel device deleted', isUnheard: true, script: `ip link delete ${device}` },
  {
    what: 'routing rules deleted',
    isUnheard: false,
    script:
      'ip rule show | sed -n "s/^\\([0-9]*\\):.*fwmark 0x26.*/\\1/p" | while read p; do ip rule del priority $p; done',
  },
];

const faults: readonly ChaosFault[] = [
  {
    weight: 5,
    async act(lab, random, scene) {
      const node = oneOf(random, nodes(lab));
      if (isLettingGo(scene, node)) return undefined;
      const killed = await lab.kill(node, agentPattern);
      return { what: `${killed} processes of the agent of ${node} killed` };
    },
  },
  {
    weight: 2,
    async act(lab, random, scene) {
      const node = oneOf(random, nodes(lab));
      if (scene.lost.has(node) || isLettingGo(scene, node)) return undefined;
      const ms = Math.round(500 + 3_000 * random());
      await pause(lab, [node], agentPattern, ms);
      return { what: `agent of ${node} stopped for ${ms} ms` };
    },
  },
  {
    weight: 2,
    async act(lab, random, scene) {
      const node = oneOf(random, gateways(lab));
      const seconds = oneOf(random, stallsSeconds);
      if (scene.lost.has(node) || isLettingGo(scene, node) || !(await hasAgent(lab, node))) return undefined;
      scene.lost.add(node);
      const over = pause(lab, [node], agentPattern, 1_000 * seconds).then(() => void scene.lost.delete(node));
      return { what: `agent of ${node} stands still for ${seconds} s`, over };
    },
  },
  {
    weight: 1,
    async act(lab, random, { lost, unheardAtMs, doubled }) {
      const node = oneOf(random, gateways(lab));
      const seconds = oneOf(random, doubledSeconds);
      if (nodes(lab).some((other) => lost.has(other)) || !(await hasAgent(lab, node))) return undefined;
      lost.add(node);
      const time = beginDoubled(node, Date.now());
      doubled.push(time);
      const isKilled = seconds === Infinity;
      const stopped = isKilled ? lab.kill(node, agentPattern) : pause(lab, [node], agentPattern, 1_000 * seconds);
      await Promise.all([isKilled ? stopped : undefined, setCuts(lab, around(node, nodes(lab), 'tunnel'))]);
      unheardAtMs.set(node, performance.now());
      let [isHealed, isBack] = [false, false];
      const over = stopped.then(async () => {
        while (Date.now() < time.untilMs && !(await hasAgent(lab, node))) await delay(100);
        endDoubled(time, Date.now());
        // It is about to let go, if the tunnel is still cut.
        unheardAtMs.set(node, performance.now());
        if (isHealed) lost.delete(node);
        isBack = true;
      });
      const undo = async () => {
        await setCuts(lab, []);
        if (isBack) lost.delete(node);
        isHealed = true;
      };
      const how = isKilled ? 'killed' : `stands still for ${seconds} s`;
      return { what: `${node}: agent ${how} and tunnel cut`, undo, over };
    },
  },
  {
    weight: 2,
    async act(lab, random) {
      const all = nodes(lab);
      const first = Math.floor(random() * all.length);
      for (const node of [...all.slice(first), ...all.slice(0, first)]) {
        if ((await lab.kill(node, controllerPattern)) > 0) return { what: `controller on ${node} killed` };
      }
      return undefined;
    },
  },
  {
    weight: 2,
    async act(lab, random, { lost }) {
      const part = oneOf(random, parts);
      // An API server that finds no etcd when it starts gives up, and here nobody would start it again.
      if (parts.some((other) => lost.has(other))) return undefined;
      lost.add(part);
      const over = lab.restart(part).finally(() => lost.delete(part));
      return { what: `${part} killed and started again`, over };
    },
  },
  {
    weight: 6,
    async act(lab, random, { lost, unheardAtMs }) {
      const node = oneOf(random, gateways(lab));
      const loss = oneOf(random, [...losses, ...silences]);
      const isHeard = loss.name === 'uplink lost' || silences.includes(loss);
      // Cuts of two nodes would heal each other: one loss at a time.
      if (nodes(lab).some((other) => lost.has(other))) return undefined;
      // Without its uplink, or a family of it, a node is still heard through the tunnel.
      if (!isHeard && !(await hasAgent(lab, node))) return undefined;
      lost.add(node);
      await loss.strike(lab, node);
      if (!isHeard) unheardAtMs.set(node, performance.now());
      const undo = async () => {
        await loss.heal(lab, node);
        lost.delete(node);
      };
      return { what: `${node}: ${loss.name}`, undo };
    },
  },
  {
    weight: 1,
    async act(lab, random, { lost }) {
      const node = oneOf(random, gateways(lab));
      if (lost.has(node)) return undefined;
      await lab.power('reboot', node);
      return { what: `${node} rebooted` };
    },
  },
  {
    weight: 3,
    async act(lab, random, { unheardAtMs }) {
      const node = oneOf(random, nodes(lab));
      const { what, isUnheard, script } = oneOf(random, damages);
      if (isUnheard && gateways(lab).includes(node) && !(await hasAgent(lab, node))) return undefined;
      // The device may be away already, by a reboot or another hand.
      await lab.exec(node, ['sh', '-c', `{ ${script}; } 2>/dev/null || true`]);
      if (isUnheard) unheardAtMs.set(node, performance.now());
      return { what: `${node}: ${what}` };
    },
  },
  {
    weight: 1,
    async act(lab) {
      return { what: 'every core busy', undo: overload(lab, 1) };
    },
  },
];

const drawn = faults.flatMap((fault) => Array.from({ length: fault.weight }, () => fault));

/** Does one fault by chance. */
export const strike = (lab: Lab, random: Random, scene: Scene): Promise<Standing | undefined> =>
  oneOf(random, drawn).act(lab, random, scene);
