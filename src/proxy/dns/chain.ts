/** From a name through its aliases to addresses, with one or more questions to the outside. */
import type { Ip } from '../../core/ip/index.ts';
import { type AddressType, type Response, rcodes } from './message.ts';
import type { Outside } from './outside.ts';

/** What a name is, as the outside tells it; nothing is checked against the guard yet. */
export type Resolution =
  | { readonly kind: 'addresses'; readonly ips: readonly (Ip | undefined)[]; readonly ttlSeconds: number }
  /** The name exists without such addresses (`nodata`), or it does not exist. */
  | { readonly kind: 'nodata' | 'nxdomain'; readonly ttlSeconds: number }
  | { readonly kind: 'failed'; readonly sentence: string };

/** Longer chains are mistakes; CoreDNS and Unbound stop at about as many. */
const MAX_ALIASES = 10;
/** How long "there is none" is believed when no server says. */
const NEGATIVE_SECONDS = 5;

/** Follows the name to its addresses. Never rejects for what the outside does. */
export async function follow(
  outside: Outside,
  name: string,
  type: AddressType,
  signal: AbortSignal,
): Promise<Resolution> {
  let asked = name;
  let ttlSeconds = Number.POSITIVE_INFINITY;
  let aliases = 0;
  for (;;) {
    const result = await outside.ask(asked, type, signal);
    if (result.kind === 'failed') return result;
    const step = walk(result.response, asked, type, aliases);
    ttlSeconds = Math.min(ttlSeconds, step.ttlSeconds);
    if (step.aliases > MAX_ALIASES) return { kind: 'failed', sentence: `more than ${MAX_ALIASES} aliases` };
    if (step.ips.length > 0) return { kind: 'addresses', ips: step.ips, ttlSeconds };
    // The server stopped at an alias without saying what is behind it: ask on from there.
    const isUnfinished = step.name !== asked && result.response.rcode === rcodes.ok && !hasNegative(result.response);
    if (!isUnfinished) {
      const negative = Math.min(ttlSeconds, result.response.negativeSeconds ?? NEGATIVE_SECONDS);
      return { kind: result.response.rcode === rcodes.nxdomain ? 'nxdomain' : 'nodata', ttlSeconds: negative };
    }
    asked = step.name;
    aliases = step.aliases;
  }
}

const hasNegative = (response: Response): boolean => response.negativeSeconds !== undefined;

/** Walks the aliases of one answer; records of other names are not believed. */
const walk = (response: Response, start: string, type: AddressType, aliasesBefore: number) => {
  let name = start;
  let aliases = aliasesBefore;
  let ttlSeconds = Number.POSITIVE_INFINITY;
  for (;;) {
    const current = name;
    const addresses = response.records.filter(
      (record) => record.kind === 'address' && record.type === type && record.name === current,
    );
    const alias = response.records.find((record) => record.kind === 'alias' && record.name === current);
    for (const { ttlSeconds: ttl } of [...addresses, ...(alias === undefined ? [] : [alias])]) {
      ttlSeconds = Math.min(ttlSeconds, ttl);
    }
    const ips = addresses.map((record) => (record.kind === 'address' ? record.ip : undefined));
    if (ips.length > 0 || alias?.kind !== 'alias' || aliases > MAX_ALIASES) return { name, ips, ttlSeconds, aliases };
    name = alias.target;
    aliases += 1;
  }
};
