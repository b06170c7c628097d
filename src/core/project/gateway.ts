/** GatewayView from an EgressGateway. */
import { EgressGatewaySpec, type NodePolicy, nodePolicies } from '../../api/egress-gateway.ts';
import type { LabelSelector } from '../../api/label-selector.ts';
import { annotations } from '../../api/names.ts';
import { type Finding, finding } from '../cluster/finding.ts';
import { compileSelector, nothing, type Selector } from '../cluster/labels.ts';
import type { Eip, GatewaySpecView, GatewayView } from '../cluster/view.ts';
import { contains, type IntervalSet, type Ip, parseIp, poolOf } from '../ip/index.ts';
import { readEip, readEntries } from './address.ts';
import { type ApiObject, createdAtMsOf, isBroken, readSpec, type SpecFault } from './api-object.ts';

/** The view of a gateway. Total: what cannot be read is in `problems`. */
export const projectGateway = (object: ApiObject): GatewayView => {
  const { metadata } = object;
  const who = `EgressGateway ${metadata.name}`;
  const problems: Finding[] = [];
  const parsed = readSpec(EgressGatewaySpec, object, who);
  // Findings about pools have reasons of their own, and are made from exact counts below.
  problems.push(
    ...parsed.faults.filter(({ path }) => path[0] !== 'ippools' || !parsed.value).map((fault) => fault.finding),
  );
  return {
    name: metadata.name,
    createdAtMs: createdAtMsOf(metadata),
    generation: metadata.generation ?? 0,
    isDeleting: metadata.deletionTimestamp !== undefined,
    spec: parsed.value && specOf(parsed.value, parsed.faults, who, problems),
    moves: movesIn(metadata.annotations?.[annotations.moveEips] ?? ''),
    problems,
  };
};

/** What cannot be read is no wish. */
const movesIn = (text: string): ReadonlyMap<Ip, string> =>
  new Map(
    text.split(',').flatMap((entry): [Ip, string][] => {
      const [address = '', node = ''] = entry.trim().split('=');
      const ip = parseIp(address);
      return ip.ok && node !== '' ? [[ip.value, node]] : [];
    }),
  );

const specOf = (
  spec: EgressGatewaySpec,
  faults: readonly SpecFault[],
  who: string,
  problems: Finding[],
): GatewaySpecView => {
  const selector = (given: LabelSelector | undefined, parent: string): Selector => {
    if (isBroken(faults, parent, 'selector')) return nothing;
    const compiled = compileSelector(given, `${who}: ${parent}.selector`);
    if (compiled.ok) return compiled.value;
    problems.push(compiled.finding);
    return nothing;
  };
  const pool = (texts: readonly string[] | undefined, field: string): IntervalSet =>
    readEntries(texts, poolOf, `${who}: ippools.${field}`, problems);
  const pools = { ipv4: pool(spec.ippools?.ipv4, 'ipv4'), ipv6: pool(spec.ippools?.ipv6, 'ipv6') };
  const { names = [], selector: allowed } = spec.allowedNamespaces ?? {};
  return {
    pools,
    defaultEip: defaultEipOf(spec, pools, who, problems),
    nodes: selector(spec.nodeSelector.selector, 'nodeSelector'),
    nodePolicy: nodePolicyOf(spec.nodeSelector.policy, who, problems),
    nodeLimit: spec.nodeSelector.limit,
    eipLimit: spec.eipLimit,
    allowedNamespaces:
      spec.allowedNamespaces === undefined
        ? undefined
        : { names, selector: allowed === undefined ? undefined : selector(allowed, 'allowedNamespaces') },
    isClusterDefault: spec.clusterDefault,
    keepsConnections: spec.keepConnections,
  };
};

const defaultEipOf = (
  { ippools }: EgressGatewaySpec,
  pools: GatewaySpecView['pools'],
  who: string,
  problems: Finding[],
): Eip => {
  const given = { ipv4: ippools?.ipv4DefaultEIP, ipv6: ippools?.ipv6DefaultEIP };
  const eip = readEip(given, `${who}: default EIP`, problems);
  const inside = <T extends Eip['ipv4'] | Eip['ipv6']>(ip: T, pool: IntervalSet): T | undefined => {
    if (ip === undefined || contains(pool, ip)) return ip;
    problems.push(finding('DefaultEipOutsidePool', `${who} has the default EIP ${ip}, which its pool does not hold.`));
    return undefined;
  };
  return { ipv4: inside(eip.ipv4, pools.ipv4), ipv6: inside(eip.ipv6, pools.ipv6) };
};

const nodePolicyOf = (text: string | undefined, who: string, problems: Finding[]): NodePolicy => {
  const known = nodePolicies.find((policy) => policy === text);
  if (known === undefined && text) {
    problems.push(
      finding('NodePolicyUnknown', `${who}: nodeSelector.policy ${JSON.stringify(text)} works as average.`),
    );
  }
  return known ?? 'average';
};
