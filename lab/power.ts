import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { labSite } from './cluster/control-plane.ts';
import { nodeFolder, startNode, wireNode } from './cluster/node.ts';
import type { LabNode, LabShape } from './cluster/shape.ts';
import { BadInput } from './host/failure.ts';
import { type Instance, type InstanceRecord, updateRecord } from './host/instance.ts';
import { end, labMark, membersOf, nodeMark, type ProcessId, signal } from './host/processes.ts';
import { removeMember, setCable } from './net/fabric.ts';
import { namespaceInodes } from './net/namespaces.ts';
import type { Programs } from './setup/go-build.ts';

/**
 * What can happen to a machine. They are different tests:
 *   off     the cable is dead and nothing runs; kernel state (routes, nftables) comes back with `on`
 *   hang    nothing runs, but the kernel still forwards, answers ARP and ping
 *   reboot  as after a power cut: processes and kernel state are gone, the disk is not; then everything starts again
 */
export const powerActions = ['off', 'on', 'hang', 'reboot'] as const;
export type PowerAction = (typeof powerActions)[number];

export interface PoweredLab {
  readonly instance: Instance;
  readonly record: InstanceRecord;
  readonly shape: LabShape;
  readonly programs: Programs;
}

/** Does it. Asking for the state a node is in already is an error: a test that does so has lost track. */
export async function power(action: PowerAction, name: string, lab: PoweredLab): Promise<void> {
  const node = lab.shape.nodes.find((candidate) => candidate.name === name);
  if (node === undefined) {
    const known = lab.shape.nodes.map((candidate) => candidate.name).join(', ');
    throw new BadInput(`lab "${lab.instance.name}" has no node ${JSON.stringify(name)}; it has ${known}`);
  }
  const state = lab.record.power[name] ?? 'on';
  if (action === 'on' ? state === 'on' : state !== 'on') {
    throw new BadInput(
      `node ${name} is ${state} already; bin/lab node ${state === 'on' ? 'off' : 'on'} ${name} changes it`,
    );
  }
  await actions[action](node, lab);
}

const actions: Readonly<Record<PowerAction, (node: LabNode, lab: PoweredLab) => Promise<void>>> = {
  async off(node, lab) {
    // The cable first: a node that is half stopped must not answer.
    await setCable(lab.instance, node.name, 'down');
    freeze(lab.instance, node.name);
    setPower(lab.instance, node.name, 'off');
  },
  async hang(node, lab) {
    freeze(lab.instance, node.name);
    setPower(lab.instance, node.name, 'hung');
  },
  async on(node, lab) {
    for (const member of members(lab.instance, node.name)) signal(member, 'SIGCONT');
    await setCable(lab.instance, node.name, 'up');
    setPower(lab.instance, node.name, 'on');
  },
  async reboot(node, lab) {
    await setCable(lab.instance, node.name, 'down');
    for (let found = members(lab.instance, node.name); found.length > 0; found = members(lab.instance, node.name)) {
      await end(found, 0);
    }
    await removeMember(lab.instance, node.name);
    await wireNode(lab.instance, node, lab.shape);
    // Leases of addresses are on a tmpfs of a real machine, too: no pod of before has one any more.
    rmSync(join(nodeFolder(lab.instance, node.name), 'cni'), { recursive: true, force: true });
    giveNewBootId(lab.instance, node.name);
    const site = labSite(lab.instance.folder, lab.programs, lab.shape.families);
    const started = startNode(lab.instance, node, lab.programs, site);
    updateRecord(lab.instance, (record) => ({ processes: { ...record.processes, ...started } }));
    setPower(lab.instance, node.name, 'on');
  },
};

/** The node tells the API server that it has booted anew: the kubelet reports it as `status.nodeInfo.bootID`. */
function giveNewBootId(instance: Instance, node: string): void {
  const file = join(nodeFolder(instance, node), 'kubelet.json');
  const config: unknown = JSON.parse(readFileSync(file, 'utf8'));
  writeFileSync(file, `${JSON.stringify(Object.assign({}, config, { bootID: randomUUID() }), null, 2)}\n`);
}

/** Stops every process of a node; asks again until no new one appears, because a process may fork meanwhile. */
function freeze(instance: Instance, node: string): void {
  const stopped = new Set<number>();
  for (let fresh = members(instance, node); fresh.length > 0; ) {
    for (const member of fresh) {
      signal(member, 'SIGSTOP');
      stopped.add(member.pid);
    }
    fresh = members(instance, node).filter((member) => !stopped.has(member.pid));
  }
}

/** Kills the processes of a node whose command line matches, without warning, and returns how many there were. */
export async function killOnNode(instance: Instance, node: string, pattern: RegExp): Promise<number> {
  const victims = processesOn(instance, node, pattern);
  await end(victims, 0);
  return victims.length;
}

/** The processes of a node whose command line matches. */
export function processesOn(instance: Instance, node: string, pattern: RegExp): ProcessId[] {
  return members(instance, node).filter(({ pid }) => pattern.test(commandLineOf(pid)));
}

function commandLineOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').join(' ').trim();
  } catch {
    return '';
  }
}

function members(instance: Instance, node: string): ProcessId[] {
  return membersOf([`${labMark}=${instance.name}`, `${nodeMark}=${node}`], namespaceInodes(instance, node));
}

function setPower(instance: Instance, node: string, state: InstanceRecord['power'][string]): void {
  updateRecord(instance, (record) => ({ power: { ...record.power, [node]: state } }));
}
