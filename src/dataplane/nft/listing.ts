/**
 * What `nft -j list` prints, as far as we use it (libnftables-json(5)). Output of a program is unknown input: whatever
 * does not look as expected is an error that names it.
 */
import { EgressError } from '../../api/error.ts';

/** One object of a listing: a table, a set, a chain, a rule. */
export interface Listed {
  /** `table`, `set`, `map`, `counter`, `chain`, `rule`. */
  readonly kind: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** The objects of a listing. Throws NFT_UNREADABLE for a text that is none. */
export const parseListing = (text: string): readonly Listed[] => {
  const whole = parseJson(text);
  const objects = isRecord(whole) ? whole.nftables : undefined;
  if (!Array.isArray(objects)) throw unreadable('a listing', text);
  return objects.flatMap((object: unknown) => {
    const [kind, fields] = isRecord(object) ? (Object.entries(object)[0] ?? []) : [];
    if (kind === undefined || !isRecord(fields)) throw unreadable('an object of a listing', object);
    return kind === 'metainfo' ? [] : [{ kind, fields }];
  });
};

/** True for a JSON object. */
export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The error for output that nft should not have printed. */
export const unreadable = (what: string, found: unknown): EgressError => {
  const text = typeof found === 'string' ? found : JSON.stringify(found);
  return new EgressError('NFT_UNREADABLE', `read ${what} of nft: cannot understand ${text.slice(0, 200)}`);
};

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    throw unreadable('a listing', text);
  }
};
