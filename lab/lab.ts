import { z } from 'zod';
import type { ControlPlanePart } from './cluster/control-plane.ts';
import { type LabShape, type ShapeRequest, shapeOf, shapeSchema } from './cluster/shape.ts';
import { removeStale, takeDown } from './down.ts';
import { type Finished, must, run } from './host/command.ts';
import { BadInput } from './host/failure.ts';
import {
  type Instance,
  type InstanceRecord,
  instanceOf,
  listInstances,
  readRecord,
  self,
  stateOf,
  updateRecord,
} from './host/instance.ts';
import { type Progress, silent } from './host/progress.ts';
import { inNamespace, outside } from './net/fabric.ts';
import { type PacketCount, packetsBySource } from './outside/counts.ts';
import { type OutsideNames, writeOutsideNames } from './outside/dns.ts';
import { restartPart } from './parts.ts';
import { killOnNode, type PowerAction, power } from './power.ts';
import { type Programs, programs } from './setup/go-build.ts';
import { setUp } from './setup/setup.ts';
import { type LabStatus, statusOf } from './status.ts';
import { bringUp, kubeconfigOf, kubectlOf, outsideAuthorityFile, outsideNamesFile, requireFree } from './up.ts';

/** A lab that is up, as programs use it: the demo, end-to-end tests, benchmarks. */
export interface Lab {
  readonly name: string;
  readonly kubeconfig: string;
  readonly status: LabStatus;
  readonly programs: Programs;
  /** The file with the certificate of the authority of outside web sites. */
  readonly outsideAuthority: string;
  /** Runs kubectl as administrator; returns stdout, throws if it fails. */
  kubectl(args: readonly string[], input?: string): Promise<string>;
  /** Runs kubectl and returns what it left behind, whatever its exit code. */
  tryKubectl(args: readonly string[], input?: string): Promise<Finished>;
  /** Applies manifests given as objects. */
  apply(...manifests: readonly object[]): Promise<void>;
  /** Runs a command in the namespace of a node, `control-plane` or `outside`; returns stdout. */
  exec(member: string, argv: readonly string[], input?: string): Promise<string>;
  /** Packets that reached the outside world since the last reset, by source address. */
  counts(): Promise<Readonly<Record<string, number>>>;
  /** The same by source address, protocol and port: nodes speak to the outside too, but not to the ports of a test. */
  packets(): Promise<readonly PacketCount[]>;
  resetCounts(): Promise<void>;
  /** Sets all outside names that are not under the outside domain; they live one second in caches. */
  setOutsideNames(names: OutsideNames): void;
  power(action: PowerAction, node: string): Promise<void>;
  /** Kills (SIGKILL) the processes of a node whose command line matches; returns how many there were. */
  kill(node: string, pattern: RegExp): Promise<number>;
  restart(part: ControlPlanePart): Promise<void>;
  /** Lets the lab outlive this process. */
  keep(): void;
  down(): Promise<void>;
}

/** Brings up a lab that belongs to this process: if it dies without `down`, the next lab command removes the lab. */
export async function startLab(
  request: { readonly name: string; readonly progress?: Progress } & Partial<ShapeRequest>,
): Promise<Lab> {
  const instance = instanceOf(request.name);
  const progress = request.progress ?? silent;
  const built = await setUp(progress);
  requireFree(instance);
  await removeStale();
  const { gateways = 2, workers = 2, proxyModeByNode = new Map(), families } = request;
  const shape = shapeOf({ gateways, workers, proxyModeByNode, ...(families === undefined ? {} : { families }) });
  await bringUp({ instance, shape, programs: built, owner: self(), progress });
  return handle(instance, shape, built);
}

/** The lab of that name that is up already. */
export async function openLab(name: string): Promise<Lab> {
  const { instance, shape } = runningLab(name);
  return handle(instance, shape, await programs());
}

/** Record and shape of a lab that is up; else a sentence that says what there is. */
export function runningLab(name: string): { instance: Instance; record: InstanceRecord; shape: LabShape } {
  const instance = instanceOf(name);
  const record = readRecord(instance);
  const state = stateOf(instance);
  if (state !== 'up' || record === undefined) {
    const others = listInstances().filter((other) => stateOf(other) === 'up');
    const hint =
      others.length > 0 ? `running: ${others.map((other) => other.name).join(', ')}` : 'start one with bin/lab up';
    throw new BadInput(`lab "${name}" is ${state === 'busy' ? 'not ready yet' : 'not up'}; ${hint}`);
  }
  return { instance, record, shape: shapeSchema.parse(record.shape) };
}

const packetsSchema = z.array(
  z.object({ source: z.string(), protocol: z.string(), port: z.int().optional(), packets: z.int() }),
);
const kubectlLimitMs = 240_000;

function handle(instance: Instance, shape: LabShape, built: Programs): Lab {
  const kubeconfig = kubeconfigOf(instance);
  const status = statusOf(shape);
  const kubectlArgv = (args: readonly string[]) => [...kubectlOf(instance, built), ...args];
  const kubectl = (args: readonly string[], input = '') =>
    must(`kubectl ${args.join(' ')}`, kubectlArgv(args), { input, timeoutMs: kubectlLimitMs });
  const exec = (member: string, argv: readonly string[], input = '') =>
    must(`${argv.join(' ')} on ${member}`, inNamespace(instance, member, argv), { input, timeoutMs: kubectlLimitMs });
  const outsideUrl = `http://127.0.0.1:${status.outside.httpPort}`;
  const packets = async () =>
    packetsSchema.parse(JSON.parse(await exec(outside.name, ['curl', '-sS', `${outsideUrl}/counts`])));
  return {
    name: instance.name,
    kubeconfig,
    status,
    programs: built,
    outsideAuthority: outsideAuthorityFile(instance),
    kubectl,
    tryKubectl: (args, input = '') => run(kubectlArgv(args), { input, timeoutMs: kubectlLimitMs }),
    async apply(...manifests) {
      const list = { apiVersion: 'v1', kind: 'List', items: manifests };
      await kubectl(['apply', '--server-side', '-f', '-'], JSON.stringify(list));
    },
    exec,
    counts: async () => packetsBySource(await packets()),
    packets,
    resetCounts: async () => void (await exec(outside.name, ['curl', '-sS', '-X', 'POST', `${outsideUrl}/reset`])),
    setOutsideNames: (names) => writeOutsideNames(outsideNamesFile(instance), names),
    power: (action, node) => power(action, node, { ...runningLab(instance.name), programs: built }),
    kill: (node, pattern) => killOnNode(instance, node, pattern),
    restart: (part) => restartPart(instance, runningLab(instance.name).record, part, built),
    keep: () => updateRecord(instance, () => ({ owner: undefined })),
    down: () => takeDown(instance),
  };
}
