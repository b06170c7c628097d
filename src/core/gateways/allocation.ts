/**
 * Which EIP each policy of a gateway gets. What a policy has is kept whenever it is still allowed; only then are new
 * EIPs given, to the oldest policy first, by the allocator that the policy asks for.
 */

import { type Decided, decided, refusedWith } from '../cluster/finding.ts';
import type {
  AddressRequest,
  Eip,
  GatewaySpecView,
  GatewayView,
  PolicyKey,
  PolicySpecView,
  PolicyView,
} from '../cluster/view.ts';
import { hashPair, hashText } from '../values/hash.ts';
import { type Holders, openPairTable, type Pair, type PairTable, sharesAddress } from './eip-pairs.ts';
import type { GatewayPools } from './pools.ts';

/** A policy that asks a gateway for an EIP. */
export interface Applicant {
  readonly policy: PolicyView;
  readonly spec: PolicySpecView;
}

/** What a gateway gives its policies. */
export interface Allocation {
  /** The EIPs in use, in the order in which their oldest policies came. */
  readonly pairs: readonly Pair[];
  readonly decisions: ReadonlyMap<PolicyKey, Decided<Pair>>;
}

/** A gateway while a plan is made: what its decisions look at. */
interface AllocationState {
  readonly gateway: GatewayView;
  readonly spec: GatewaySpecView;
  readonly book: PairTable;
  readonly seed: string;
  /** The default EIP that the gateway names. */
  readonly defaultPair: Pair | undefined;
  /** Where it names none: the EIP that takes its place in this plan, once a new policy has asked for it. */
  standIn: Pair | undefined;
}

/**
 * The first half of the work: every policy that may keep its EIP keeps it. All gateways do this before any gives a new
 * EIP, so that two gateways whose pools overlap cannot take from each other. `applicants` are sorted by age and want
 * an EIP (not the node IP). The function that is returned does the second half.
 */
export const keepEips = (
  gateway: GatewayView,
  spec: GatewaySpecView,
  pools: GatewayPools,
  applicants: readonly Applicant[],
  holders: Holders,
  seed: string,
): (() => Allocation) => {
  const book = openPairTable(gateway.name, pools, holders);
  const round: AllocationState = {
    gateway,
    spec,
    book,
    seed,
    defaultPair: formDefault(spec.defaultEip, book),
    standIn: undefined,
  };
  const decisions = new Map<PolicyKey, Decided<Pair>>();
  const waiting: Applicant[] = [];
  for (const applicant of applicants) {
    const pair = keep(applicant, round);
    if (pair === undefined) waiting.push(applicant);
    else decisions.set(applicant.policy.key, decided(pair));
  }
  return () => {
    for (const pair of book.pairs) if (pair.policies.length > 0) book.complete(pair);
    // Those who name their EIP come first, or the others might be given it, or be refused before there is one to share.
    const isGiven = (applicant: Applicant): boolean => applicant.spec.address.kind === 'given';
    for (const { policy, spec: asked } of [...waiting.filter(isGiven), ...waiting.filter((one) => !isGiven(one))]) {
      const decision = give(policy, asked.address, round);
      if (decision.ok) {
        book.complete(decision.value);
        decision.value.policies.push(policy);
      }
      decisions.set(policy.key, decision);
    }
    return { pairs: book.pairs.filter(({ policies }) => policies.length > 0), decisions };
  };
};

/** The default EIP is a pair from the start, so that nobody else gets a half of it. */
const formDefault = (eip: Eip, book: PairTable): Pair | undefined => {
  const ipv4 = eip.ipv4 !== undefined && book.isFree(eip.ipv4) ? eip.ipv4 : undefined;
  const ipv6 = eip.ipv6 !== undefined && book.isFree(eip.ipv6) ? eip.ipv6 : undefined;
  return ipv4 === undefined && ipv6 === undefined ? undefined : book.form({ ipv4, ipv6 });
};

const keep = ({ policy, spec }: Applicant, round: AllocationState): Pair | undefined => {
  const { book } = round;
  const recorded = book.usableOf(policy.recorded.eip);
  if (recorded.ipv4 === undefined && recorded.ipv6 === undefined) return undefined;
  const { address } = spec;
  if (address.kind === 'given' && !isAsRequested(address.eip, recorded, book)) return undefined;
  const { defaultPair } = round;
  if (wantsDefault(spec) && defaultPair !== undefined && !sharesAddress(recorded, defaultPair)) return undefined;
  const pair = join(recorded, book);
  pair.policies.push(policy);
  pair.keepers.push(policy);
  return pair;
};

/** True when the record has every address that was asked for, and nobody older has paired one of them otherwise. */
const isAsRequested = (asked: Eip, recorded: Eip, book: PairTable): boolean => {
  if (asked.ipv4 !== undefined && asked.ipv4 !== recorded.ipv4) return false;
  if (asked.ipv6 !== undefined && asked.ipv6 !== recorded.ipv6) return false;
  return isPairable(asked, book);
};

/** True when both addresses are in one pair, or can be; one address alone always can. */
const isPairable = ({ ipv4, ipv6 }: Eip, book: PairTable): boolean => {
  if (ipv4 === undefined || ipv6 === undefined) return true;
  const [pair4, pair6] = [book.of(ipv4), book.of(ipv6)];
  if (pair4 !== undefined && pair6 !== undefined) return pair4 === pair6;
  return (pair4 === undefined || pair4.ipv6 === undefined) && (pair6 === undefined || pair6.ipv4 === undefined);
};

/** The pair of these addresses. Where two records disagree about a pair, the older policy has formed it already. */
const join = ({ ipv4, ipv6 }: Eip, book: PairTable): Pair => {
  const pair = book.of(ipv4) ?? (ipv4 === undefined || book.of(ipv6)?.ipv4 === undefined ? book.of(ipv6) : undefined);
  if (pair === undefined) return book.form({ ipv4, ipv6: book.of(ipv6) === undefined ? ipv6 : undefined });
  book.extend(pair, { ipv4, ipv6 });
  return pair;
};

const give = (policy: PolicyView, address: AddressRequest, round: AllocationState): Decided<Pair> => {
  const { gateway, book } = round;
  if (gateway.isDeleting) {
    return refusedWith('GatewayDeleting', `Gateway ${gateway.name} of policy ${policy.key} is being deleted.`);
  }
  if (!book.hasIpv4 && !book.hasIpv6) {
    return refusedWith('PoolEmpty', `Gateway ${gateway.name} of policy ${policy.key} has no addresses.`);
  }
  if (address.kind === 'given') return giveRequested(policy, address.eip, round);
  const pair = address.kind === 'allocated' ? chosen(policy, address.allocator, round) : undefined;
  return pair === undefined
    ? refusedWith('PoolEmpty', `Gateway ${gateway.name} of policy ${policy.key} has no address that is free to use.`)
    : decided(pair);
};

const giveRequested = (policy: PolicyView, asked: Eip, { gateway, book }: AllocationState): Decided<Pair> => {
  for (const ip of [asked.ipv4, asked.ipv6]) {
    if (ip === undefined || book.of(ip) !== undefined || book.isFree(ip)) continue;
    return refusedWith(
      'EipOutsidePool',
      `Policy ${policy.key} asks for ${ip}, which gateway ${gateway.name} does not have to give.`,
    );
  }
  if (isPairable(asked, book)) return decided(join(asked, book));
  return refusedWith(
    'EipPairTaken',
    `Policy ${policy.key} asks for ${asked.ipv4} with ${asked.ipv6}, which are not one pair at gateway ${gateway.name}.`,
  );
};

const chosen = (
  policy: PolicyView,
  allocator: 'default' | 'rr' | 'random' | 'limit',
  round: AllocationState,
): Pair | undefined => {
  const { book, spec } = round;
  switch (allocator) {
    case 'default':
      round.standIn ??= round.defaultPair ?? usualDefault(book, policy) ?? unused(round) ?? leastUsed(book, policy);
      return round.standIn;
    case 'rr':
      return unused(round) ?? leastUsed(book, policy);
    case 'random':
      return drawn(policy, round) ?? unused(round) ?? anyUsed(book, policy);
    case 'limit':
      return mostUsedBelow(spec.eipLimit, book, policy) ?? unused(round) ?? anyUsed(book, policy);
    default:
      return allocator satisfies never;
  }
};

const wantsDefault = ({ address }: PolicySpecView): boolean =>
  address.kind === 'allocated' && address.allocator === 'default';

/** The EIP that most of the policies have which want the default. */
const usualDefault = (book: PairTable, policy: PolicyView): Pair | undefined =>
  best(book, policy, ({ policies }) => {
    const many = policies.filter(({ spec }) => spec !== undefined && wantsDefault(spec)).length;
    return many > 0 ? many : undefined;
  });

const drawn = ({ uid }: PolicyView, { book, seed }: AllocationState): Pair | undefined =>
  book.drawn(hashPair(hashText(seed), hashText(uid)));

/** An EIP that no policy has; the default EIP comes last, because policies that ask for nothing will share it. */
const unused = ({ book, defaultPair }: AllocationState): Pair | undefined => {
  const eip = book.nextFree();
  if (eip !== undefined) return book.form(eip);
  return defaultPair?.policies.length === 0 ? defaultPair : undefined;
};

const leastUsed = (book: PairTable, policy: PolicyView): Pair | undefined =>
  best(book, policy, ({ policies }) => -policies.length);

const mostUsedBelow = (limit: number, book: PairTable, policy: PolicyView): Pair | undefined =>
  best(book, policy, ({ policies }) => (policies.length < limit ? policies.length : undefined));

const anyUsed = (book: PairTable, policy: PolicyView): Pair | undefined => best(book, policy, () => 0);

/**
 * The pair in use with the highest score; undefined is no candidate. The uid of the policy decides between equals, so
 * that neither the order of events nor that of names does.
 */
const best = (book: PairTable, policy: PolicyView, scoreOf: (pair: Pair) => number | undefined): Pair | undefined => {
  const subject = hashText(policy.uid);
  let found: { pair: Pair; score: number; tie: number } | undefined;
  for (const pair of book.pairs) {
    const score = pair.policies.length === 0 ? undefined : scoreOf(pair);
    if (score === undefined || (found !== undefined && score < found.score)) continue;
    const tie = hashPair(subject, pair.hash);
    if (found === undefined || score > found.score || tie > found.tie) found = { pair, score, tie };
  }
  return found?.pair;
};
