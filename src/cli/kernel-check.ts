/** What was decided about the traffic of a pod, compared with what a kernel holds. */
import { contains, familyOf, type Ip, isIpv4, parseCidrMasking, parseSet } from '../core/ip/index.ts';
import type { KernelSlot, KernelSource, KernelVerdict } from '../core/node/kernel-view.ts';
import type { PacketOutcome } from '../core/policies/outcome.ts';
import type { KernelAnswer, Question } from './agents.ts';
import type { Check } from './check.ts';
import type { Destination, PodDecisions, TrafficOutcome } from './decide.ts';

/** Compares the decision with the kernels of the node of the pod and of the gateway nodes; each is said once. */
export const checkKernels = async (
  { pod: { node }, ways }: PodDecisions,
  ask: (question: Question) => Promise<KernelAnswer>,
): Promise<Check[]> => {
  if (node === undefined) return [];
  const checks = await Promise.all(
    ways.flatMap((way) => {
      const { source: ip, outcome } = way;
      const slot = outcome.kind === 'gateway' ? outcome.slot : undefined;
      const worker = ask({ node, ip, slot }).then((answer) => checkWorker(node, way, answer));
      if (outcome.kind !== 'gateway') return [worker];
      return [worker, ask({ node: outcome.node, slot }).then((answer) => checkGateway(outcome, answer))];
    }),
  );
  return [...new Map(checks.map((check) => [`${check.where} ${check.sentence}`, check])).values()];
};

/** Compares the kernel of the node that the pod runs on. */
export const checkWorker = (
  node: string,
  { source, about, to, outcome }: TrafficOutcome,
  answer: KernelAnswer,
): Check => {
  if (!answer.ok) return { where: node, result: 'unknown', sentence: answer.sentence };
  const { view } = answer;
  const wanted = wantedText(outcome);
  const found = verdictText(verdictOf(view.source, to), view.slot);
  const known = view.hasTable ? '' : ', because the kernel has no table of Sallyport';
  const who = `${source} (${view.source === undefined ? 'no class' : `class ${view.source.class}`}) to ${about}`;
  if (found === wanted) return { where: node, result: 'same', sentence: `${who}: ${found}${known}.` };
  return { where: node, result: 'different', sentence: `${who}: ${found}${known}; expected: ${wanted}.` };
};

/** Compares the kernel of the gateway node; call it for the outcome `gateway` only. */
export const checkGateway = (
  { node, slot, eip }: Extract<PacketOutcome, { kind: 'gateway' }>,
  answer: KernelAnswer,
): Check => {
  if (!answer.ok) return { where: node, result: 'unknown', sentence: answer.sentence };
  const { ipv4, ipv6 } = answer.view.slot?.eip ?? {};
  const found = isIpv4(eip) ? ipv4 : ipv6;
  const leaves = `slot ${slot} leaves with ${found ?? `no IPv${familyOf(eip)} address`}`;
  if (found === eip) return { where: node, result: 'same', sentence: `${leaves}.` };
  return { where: node, result: 'different', sentence: `${leaves}; expected: ${eip}.` };
};

/** A source that the kernel does not know is left alone; so is what belongs to the cluster and has no verdict. */
const verdictOf = (source: KernelSource | undefined, { ip, isOutside }: Destination): KernelVerdict => {
  const named = source?.destinations.find(({ range }) => isIn(range, ip));
  if (named !== undefined) return named.verdict;
  return source !== undefined && isOutside ? source.otherwise : { kind: 'leftAlone' };
};

const isIn = (range: string, ip: Ip): boolean => {
  const set = parseSet([range], parseCidrMasking);
  return set.ok && contains(set.value, ip);
};

const wantedText = (outcome: PacketOutcome): string => {
  switch (outcome.kind) {
    case 'gateway':
      return slotText(outcome.slot, outcome.node);
    case 'drop':
      return 'dropped';
    case 'nodeIp':
    case 'leftAlone':
      return 'left alone';
    default:
      return outcome satisfies never;
  }
};

const verdictText = (verdict: KernelVerdict, asked: KernelSlot | undefined): string => {
  switch (verdict.kind) {
    case 'slot':
      return slotText(verdict.slot, asked?.slot === verdict.slot ? asked.gateway : undefined);
    case 'drop':
      return 'dropped';
    case 'leftAlone':
      return 'left alone';
    default:
      return verdict satisfies never;
  }
};

const slotText = (slot: number, gateway: string | undefined): string =>
  gateway === undefined ? `slot ${slot} to no known node` : `slot ${slot} to node ${gateway}`;
