/**
 * desiredFor a node: what its kernel should hold, from what its agent knows. The steps are pure functions, each in a file
 * of its own. Each remembers its last call, so that a change costs only the steps that depend on it: of a new pod, its
 * own elements; of a policy, the index, its slot, and the classes that have it.
 */

import type { Labels } from '../cluster/labels.ts';
import { insideOf, outsideOf } from '../cluster/outside.ts';
import type { ClusterRanges, NamespaceView } from '../cluster/view.ts';
import { emptySet, familyOf, type Ip } from '../ip/index.ts';
import { createPolicyIndexer } from '../policies/policy-index.ts';
import { isSameList, isSameSet } from '../values/equality.ts';
import { compareText } from '../values/hash.ts';
import { asRecorded, type Bindings, createBindings } from './bindings.ts';
import { createGatewayHoldings } from './claims.ts';
import { type Class, type ClassByAddress, createClassifier, haveSameClasses, type Net, netsOf } from './classes.ts';
import type { Claim, NodeDesired, NodeProblem, TableSettings } from './desired.ts';
import { createDestinations } from './destinations.ts';
import {
  classElements,
  clusterElements,
  createForwarding,
  createSources,
  eipElements,
  strictElements,
  tunnelElements,
} from './elements.ts';
import { existingRules, knownAddresses } from './existing.ts';
import { createGroups, type Group, localGroups } from './groups.ts';
import { type HostView, type NodeInput, type NodeOwnership, type NodeSettings, parentIn } from './input.ts';
import { networkOf } from './network.ts';
import { createReach, type Reach } from './reach.ts';
import { remember } from './remember.ts';
import { sysctlsOf } from './sysctls.ts';
import { familiesIn, type TunnelEnd, tunnelMtu, underlayOf } from './tunnel-ends.ts';
import { areSameVerdicts, verdictProblems, verdictsAt } from './verdicts.ts';

/**
 * Makes the function that plans a node. Its result depends on the input alone: what it remembers only saves work, for
 * the lists of the input that are the same value as last time.
 */
export const createNodePlanner = (): ((input: NodeInput) => NodeDesired) => {
  const index = remember(createPolicyIndexer());
  const bindingsFor = remember(createBindings());
  const gatewaysFor = remember(gatewaysOf);
  const groupsFor = remember(createGroups());
  const localFor = remember(localGroups, isSameList);
  const reachFor = createReach();
  const families = remember(familiesIn);
  const labels = remember(labelsByNamespace);
  const classesOfPods = remember(createClassifier(), haveSameClasses);
  const nets = remember(netsOf, (a, b) => a.length + b.length === 0);
  const inside = remember(insideOf);
  const outside = remember((ranges: ClusterRanges | undefined) => ranges && outsideOf(ranges));
  const allClasses = remember(classesIn);
  const policiesOf = remember(policiesIn);
  const destinationsFor = remember(createDestinations());
  const verdictsFor = remember(verdictsAt, areSameVerdicts);
  const nodeAddresses = remember(nodeAddressesOf);
  const known = remember(knownAddresses, isSameSet);
  const existing = remember(existingRules);
  const holdingsFor = remember(createGatewayHoldings());
  const elements = {
    tunnel: remember(tunnelElements),
    cluster: remember(clusterElements),
    strict: remember(strictElements),
    classes: remember(classElements),
    forward: remember(createForwarding()),
    eips: remember(eipElements),
    sources: remember(createSources()),
  };
  const networkFor = remember(
    (settings: NodeSettings, { own, peers, numbers }: Reach, isGateway: boolean, claims: readonly Claim[]) =>
      networkOf({ settings, tunnel: own.ok ? own.value : undefined, peers, numbers, isGateway, claims }),
  );
  const sysctlsFor = remember(sysctlsOf);
  const settingsFor = remember(tableSettings);

  return (input) => {
    const { node, settings, host } = input;
    const ranges = input.ranges?.isKnown ? input.ranges : undefined;
    const on = families(settings);
    const policies = index(input.policies);
    const { ownership } = input;
    const owners = ownership?.owners ?? asRecorded;
    const bindings = bindingsFor(policies, owners);
    const reach = reachFor(input, gatewaysFor(bindings.nodes, ownership?.gateways));
    const { own, ends, numbers } = reach;

    const byAddress = classesOfPods(policies, input.pods, labels(input.namespaces));
    const unknownSources = nets(policies);
    const classes = allClasses(byAddress, unknownSources);
    const destinations = destinationsFor(classes, outside(ranges));
    const served = policiesOf(classes);
    const verdicts = verdictsFor(served, node, host, reach, bindings);
    const addresses = known(input.pods, input.namespaces);

    const groups = mayBeLocal(bindings, node, ownership) ? groupsFor(bindings.bySlot) : noGroups;
    const local = localFor(groups, node, ownership?.standbys, ownership?.holds);
    const isGateway = local.length > 0;
    const { unclaimable } = input;
    const taken = nodeAddresses(ends, host);
    const holdings = holdingsFor(local, node, host, settings, unclaimable, taken, ownership?.holds);

    return {
      table: {
        settings: settingsFor(settings, host, ownership !== undefined),
        elements: {
          ...elements.tunnel(ends),
          ...elements.cluster(inside(ranges), on),
          ...elements.strict(settings.isStrict, addresses, ranges?.pods ?? emptySet, on),
          ...elements.classes(byAddress, unknownSources, destinations, verdicts, on),
          ...elements.forward(bindings, node, numbers),
          ...elements.eips(holdings.listed),
          ...elements.sources(holdings.sources),
        },
      },
      network: networkFor(settings, reach, isGateway, holdings.ready),
      sysctls: sysctlsFor(settings, own.ok, isGateway, holdings.ready),
      existing: existing(byAddress, unknownSources, destinations, verdicts, inside(ranges), on, addresses),
      claims: holdings.claims,
      epochs: holdings.epochs,
      expected: holdings.expected,
      standbys: holdings.standbys,
      unclaimed: holdings.unclaimed,
      awaited: holdings.awaited,
      nodeGroups: holdings.nodeGroups,
      problems: sortedProblems([
        ...(own.ok ? [] : [{ finding: own.finding, policy: undefined }]),
        ...verdictProblems(served, node, ranges !== undefined, reach, owners),
        ...holdings.problems,
      ]),
      gatewayNumbers: numbers,
    };
  };
};

/** The nodes that some policy leaves through, or may come to. */
const gatewaysOf = (nodes: Bindings['nodes'], gateways: ReadonlySet<string> | undefined): ReadonlySet<string> =>
  gateways === undefined ? nodes : nodes.union(gateways);

const noGroups: readonly Group[] = [];

/** False for a node that no traffic leaves on: most nodes of a cluster need not group anything. */
const mayBeLocal = ({ nodes }: Bindings, node: string, ownership: NodeOwnership | undefined): boolean =>
  nodes.has(node) || (ownership !== undefined && ownership.standbys.size + ownership.holds.size > 0);

const noLabels: Labels = {};

/** Labels of namespaces by name; none for a namespace that is not known yet. */
const labelsByNamespace = (namespaces: readonly NamespaceView[]): ((name: string) => Labels) => {
  const byName = new Map(namespaces.map(({ name, labels }) => [name, labels]));
  return (name) => byName.get(name) ?? noLabels;
};

const classesIn = (byAddress: ClassByAddress, nets: readonly Net[]): ReadonlyMap<string, Class> => {
  const classes = new Map<string, Class>();
  for (const one of byAddress.values()) classes.set(one.name, one);
  for (const net of nets) classes.set(net.class.name, net.class);
  return classes;
};

const policiesIn = (classes: ReadonlyMap<string, Class>) =>
  new Set(Iterator.from(classes.values()).flatMap(({ policies }) => policies));

/**
 * The addresses that carry tunnels. Those that Kubernetes lists for nodes are not asked: some clouds list every address
 * that they see on a node, and would take its EIPs away from it.
 */
const nodeAddressesOf = (ends: ReadonlyMap<string, TunnelEnd>, host: HostView): ReadonlySet<Ip> => {
  const parents = [parentIn(host), ...[...ends.values()].map(({ parent }) => parent)];
  return new Set(parents.flatMap((parent) => [parent?.ipv4, parent?.ipv6]).filter((ip) => ip !== undefined));
};

// The MTU of Ethernet: what a node is taken to have whose parent interface is gone.
const USUAL_MTU = 1500;
// An IP header and a TCP header, both without options.
const HEADERS = { ipv4: 40, ipv6: 60 };

const tableSettings = ({ device, port, isStrict }: NodeSettings, host: HostView, isGated: boolean): TableSettings => {
  const parent = parentIn(host);
  const local = parent && underlayOf(parent);
  const mtu = tunnelMtu(parent?.mtu ?? USUAL_MTU, local === undefined ? 4 : familyOf(local));
  const name = parent?.name;
  return { device, parent: name, port, mss: { ipv4: mtu - HEADERS.ipv4, ipv6: mtu - HEADERS.ipv6 }, isGated, isStrict };
};

const sortedProblems = (problems: readonly NodeProblem[]): readonly NodeProblem[] =>
  problems.toSorted(
    (a, b) =>
      compareText(a.policy ?? '', b.policy ?? '') ||
      compareText(a.finding.reason, b.finding.reason) ||
      compareText(a.finding.sentence, b.finding.sentence),
  );
