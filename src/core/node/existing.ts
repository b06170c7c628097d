/**
 * Existing connections: those that are open when policies begin to be about their pods. The kernel asks policies when a
 * connection begins, so one that began without a policy keeps the address it has for as long as it lives. Here is decided
 * which of them may:
 *
 * - A pod that the kernel did not know yet was under its policies from its first breath; it only was quicker than the agent. What it
 *   opened without a policy that is about it is cut. After a boot that is every pod.
 * - A pod that the kernel knew before has come under a policy now: `onExistingConnections` of the policy decides.
 */

import { UNROUTED } from '../cluster/outside.ts';
import type { NamespaceView, PodView, PolicyView } from '../cluster/view.ts';
import { contains, familyOf, type IntervalSet, type Ip, type IpFamily } from '../ip/index.ts';
import { isSource } from '../policies/policy-index.ts';
import type { Class, ClassByAddress, Net } from './classes.ts';
import type { Destinations } from './destinations.ts';
import { DROP, KIND_MASK, LEAVE_ALONE, REPLY_KIND, SLOT_KIND } from './numbers.ts';
import type { Verdicts } from './verdicts.ts';

/** What a new connection of a source would get, as the table has it in its sets and maps. */
export interface ExistingRules {
  readonly byAddress: ClassByAddress;
  readonly nets: readonly Net[];
  /** By the name of the class. */
  readonly destinations: ReadonlyMap<string, Destinations>;
  readonly verdicts: Verdicts;
  /** Addresses that are not outside the cluster. */
  readonly inside: IntervalSet;
  readonly families: readonly IpFamily[];
  /** The addresses of all pods that are known, under a policy or not. */
  readonly known: ReadonlySet<Ip>;
}

export const existingRules = (
  byAddress: ClassByAddress,
  nets: readonly Net[],
  destinations: ReadonlyMap<string, Destinations>,
  verdicts: Verdicts,
  inside: IntervalSet,
  families: readonly IpFamily[],
  known: ReadonlySet<Ip>,
): ExistingRules => ({ byAddress, nets, destinations, verdicts, inside, families, known });

/**
 * The addresses of pods that are known. A pod counts as known once its namespace is, too: until then nobody can say that no
 * policy is about it.
 */
export const knownAddresses = (pods: readonly PodView[], namespaces: readonly NamespaceView[]): ReadonlySet<Ip> => {
  const names = new Set(namespaces.map(({ name }) => name));
  const sources = pods.filter((pod) => isSource(pod) && names.has(pod.namespace));
  return new Set(sources.flatMap(({ ipv4, ipv6 }) => [...ipv4, ...ipv6]));
};

/** What was in force when connections were looked at last. */
export interface Before {
  /** Undefined when this agent has not looked yet. */
  readonly rules: ExistingRules | undefined;
  /** The addresses that were known then; undefined when the kernel knew nothing, as after a boot. */
  readonly known: ReadonlySet<Ip> | undefined;
}

/** Whether a connection to a destination, with a connection mark, has to go. */
export type MustGo = (destination: Ip, mark: number) => boolean;
/** Says which connections of a source have to go; undefined for a source that keeps them all. */
export type CutOf = (source: Ip) => MustGo | undefined;

/** Which connections have to go now; undefined when none can, so that nobody has to look at them. */
export const cutsAfter = (before: Before, rules: ExistingRules): CutOf | undefined => {
  const { byAddress, nets, families } = rules;
  if (before.rules === rules) return undefined;
  const rulings = new Map<Ip, MustGo>();
  for (const [ip, one] of byAddress) {
    const isNew = before.known?.has(ip) !== true;
    if (!families.includes(familyOf(ip))) continue;
    if (isNew || isOther(before.rules?.byAddress.get(ip), one, before.rules, rules)) {
      rulings.set(ip, mustGo(one, rules, isNew));
    }
  }
  const hasBooted = before.known === undefined;
  const netRulings = nets
    .filter((net) => hasBooted || (before.rules?.nets !== nets && hasCut(net.class)))
    .map((net) => ({ net, ruling: mustGo(net.class, rules, hasBooted) }));
  if (rulings.size === 0 && netRulings.length === 0) return undefined;
  return (source) => {
    const ruling = rulings.get(source);
    // A pod comes before a net.
    if (ruling !== undefined || byAddress.has(source) || !families.includes(familyOf(source))) return ruling;
    return netRulings.find(({ net }) => contains(net.addresses, source))?.ruling;
  };
};

const hasCut = ({ policies }: Class): boolean => policies.some(cuts);
const cuts = ({ spec }: PolicyView): boolean => spec?.onExistingConnections === 'Cut';

/** True when policies that cut may be about other connections of a source than before. */
const isOther = (
  was: Class | undefined,
  now: Class,
  before: ExistingRules | undefined,
  rules: ExistingRules,
): boolean =>
  hasCut(now) &&
  (was !== now ||
    before?.destinations.get(now.name) !== rules.destinations.get(now.name) ||
    now.policies.some((policy) => !isSameVerdict(before?.verdicts.get(policy), rules.verdicts.get(policy))));

type Verdict = Readonly<Record<IpFamily, number>> | undefined;
const isSameVerdict = (a: Verdict, b: Verdict): boolean => a?.[4] === b?.[4] && a?.[6] === b?.[6];

/** Says which connections of a class have to go: the same lookups as in the chain `by_destination` of the table. */
const mustGo = (one: Class, { destinations, verdicts, inside }: ExistingRules, isNew: boolean): MustGo => {
  const known = destinations.get(one.name);
  return (destination, mark) => {
    // Also when a policy names it. What is an address of this very node, only the kernel knows.
    if (contains(UNROUTED, destination)) return false;
    const policy = known && policyFor(known, destination, inside);
    if (policy === undefined) return false;
    const verdict = verdicts.get(policy)?.[familyOf(destination)] ?? LEAVE_ALONE;
    if (verdict === LEAVE_ALONE) return false;
    const kind = (mark & KIND_MASK) >>> 0;
    if (kind !== SLOT_KIND && kind !== REPLY_KIND) return isNew || cuts(policy);
    // It is under a policy: this one, or another one that the pod was under. Of a policy that nothing serves nobody can tell.
    return cuts(policy) && kind === SLOT_KIND && verdict !== DROP && mark >>> 0 !== verdict;
  };
};

/** The policy that decides about a destination. */
const policyFor = (
  { parts, otherwise }: Destinations,
  destination: Ip,
  inside: IntervalSet,
): PolicyView | undefined => {
  const part = parts.find(({ addresses }) => contains(addresses, destination));
  if (part !== undefined) return part.policy;
  return contains(inside, destination) ? undefined : otherwise;
};
