/**
 * Move is what `vip move` does: it writes on the gateway where an EIP is wanted, or what leaves with the address of one of its nodes, waits until the controller and the agents
 * have made it so, and takes the wish away again: nothing moves back by itself. This file decides; it asks nobody.
 */
import { EgressGatewaySpec, EgressGatewayStatus } from '../api/egress-gateway.ts';
import { EgressTunnelStatus } from '../api/egress-tunnel.ts';
import { annotations } from '../api/names.ts';
import { PolicyStatus } from '../api/policy.ts';
import { contains, type Ip, parseIp, poolOf } from '../core/ip/index.ts';
import { nodeGroupKey } from '../core/ownership/node-group.ts';
import { readSpec, readStatus } from '../core/project/api-object.ts';
import type { ParseResult } from './pod-name.ts';
import type { OwnObjects, ServedObject } from './read.ts';

/** The words of the command. */
export interface MoveQuestion {
  readonly egressGatewayName: string;
  readonly vip: string;
  readonly targetNode: string;
}

/** An EIP, or a node group, that is to be on another node. */
export interface Move {
  readonly gateway: string;
  /** The EIP, or what stands for the node group. */
  readonly vip: Ip;
  /** The node on record of the group; undefined for an EIP. */
  readonly from: string | undefined;
  readonly to: string;
  /** How many policies leave with it. */
  readonly policies: number;
  /** True when it is there already. */
  readonly isThere: boolean;
}

/** What is to be moved; a sentence when it cannot be. */
export const moveOf = (objects: OwnObjects, question: MoveQuestion): ParseResult<Move> => {
  const { egressGatewayName: gateway, targetNode: to } = question;
  const found = objects.gateways.find(({ metadata }) => metadata.name === gateway);
  if (found === undefined) return refused(`There is no EgressGateway ${gateway}; choose one of: ${namesOf(objects)}.`);
  const nodes = readStatus(EgressGatewayStatus, found)?.nodeList ?? [];
  const from = nodes.some(({ name }) => name === question.vip) ? question.vip : undefined;
  const vip =
    from === undefined ? parseIp(question.vip) : { ok: true as const, value: nodeGroupKey({ gateway, node: from }) };
  if (!vip.ok) {
    const allowed = `allowed is an EIP such as 10.6.1.21, or a node of gateway ${gateway}`;
    return refused(`--vip is ${JSON.stringify(question.vip)}: ${allowed}.`);
  }
  if (from === undefined && !isInPool(found, vip.value)) {
    return refused(`The pool of gateway ${gateway} does not contain ${vip.value}.`);
  }
  const target = nodes.find(({ name }) => name === to);
  if (target === undefined) {
    const others = nodes.map(({ name }) => name).join(', ') || 'none';
    return refused(`Gateway ${gateway} does not select node ${to}; it selects: ${others}.`);
  }
  if (target.status !== 'Ready') return refused(`Node ${to} is ${target.status ?? 'not seen yet'}, not Ready.`);
  const nodesNow = nodesWith(objects, vip.value);
  if (nodesNow.length === 0) {
    const what = from === undefined ? vip.value : `the address of node ${from}`;
    return refused(`No policy leaves with ${what}, so there is nothing to move.`);
  }
  const isThere = nodesNow.every((node) => node === to);
  return { ok: true, value: { gateway, vip: vip.value, from, to, policies: nodesNow.length, isThere } };
};

/** The annotation of a gateway with a wish added, or taken away where `node` is undefined; null when none is left. */
export const wishesWith = ({ metadata }: ServedObject, vip: Ip, node: string | undefined): string | null => {
  const kept = (metadata.annotations?.[annotations.moveEips] ?? '')
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '' && !entry.startsWith(`${vip}=`));
  const all = node === undefined ? kept : [...kept, `${vip}=${node}`];
  return all.length === 0 ? null : all.join(',');
};

/** What is left to do until the move is complete; undefined when it is. */
export const remainingOf = ({ vip, from, to }: Move, objects: OwnObjects): string | undefined => {
  const behind = nodesWith(objects, vip).filter((node) => node !== to);
  if (behind.length > 0)
    return `${behind.length} ${behind.length === 1 ? 'policy is' : 'policies are'} still on ${behind[0]}`;
  // Policies with the address of another node are in another group.
  if (from !== undefined) return undefined;
  const tunnel = objects.tunnels.find(({ metadata }) => metadata.name === to);
  const held = tunnel && readStatus(EgressTunnelStatus, tunnel)?.report?.eips;
  return held?.some(({ ip }) => ip === vip) ? undefined : `node ${to} does not report that it holds ${vip}`;
};

/** The nodes on record for the policies that leave with an EIP, or are in a node group. */
const nodesWith = ({ policies, clusterPolicies }: OwnObjects, vip: Ip): readonly string[] =>
  [...policies, ...clusterPolicies].flatMap((object) => {
    const { eip, gateway, node } = readStatus(PolicyStatus, object) ?? {};
    if (node === undefined) return [];
    const isInGroup = gateway !== undefined && nodeGroupKey({ gateway, node }) === vip;
    return isInGroup || eip?.ipv4 === vip || eip?.ipv6 === vip ? [node] : [];
  });

const isInPool = (gateway: ServedObject, vip: Ip): boolean => {
  const { ippools } = readSpec(EgressGatewaySpec, gateway, '').value ?? {};
  const pool = poolOf([...(ippools?.ipv4 ?? []), ...(ippools?.ipv6 ?? [])]);
  return pool.ok && contains(pool.value, vip);
};

const namesOf = ({ gateways }: OwnObjects): string =>
  gateways
    .map(({ metadata }) => metadata.name)
    .toSorted()
    .join(', ') || 'none';

const refused = (sentence: string): { readonly ok: false; readonly sentence: string } => ({ ok: false, sentence });
