/**
 * What survives a restart of the agent: the text that the chains were loaded from, and how the kernel listed them right
 * after. nft prints rules in other words than it reads them, so the text alone cannot be compared with the kernel.
 */
import { isRecord } from './listing.ts';

export interface ChainRecord {
  readonly text: string;
  readonly chains: string;
  /** The same of the seal, and the tunnel device that it was made for. */
  readonly seal?: { readonly chains: string; readonly device: string };
}

/** The record as it is kept in a file. */
export const writeRecord = (record: ChainRecord): string => `${JSON.stringify(record)}\n`;

/** The record from a file; undefined for anything else, such as a file of an older version. */
export const readRecord = (kept: string | undefined): ChainRecord | undefined => {
  if (kept === undefined) return undefined;
  try {
    const record: unknown = JSON.parse(kept);
    if (!isRecord(record)) return undefined;
    const { text, chains, seal } = record;
    if (typeof text !== 'string' || typeof chains !== 'string') return undefined;
    const isSeal = isRecord(seal) && typeof seal.chains === 'string' && typeof seal.device === 'string';
    return { text, chains, ...(isSeal ? { seal: { chains: String(seal.chains), device: String(seal.device) } } : {}) };
  } catch {
    return undefined;
  }
};
