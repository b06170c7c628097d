/** Pools of egress IPs, written as lists of entries. */
import { parseCidrMasking } from '../../api/ip/cidr.ts';
import { usable } from '../../api/ip/entry.ts';
import type { Parsed } from '../../api/ip/reason.ts';
import { type IntervalSet, parseEntries } from './interval-set.ts';

/** The usable addresses of a pool. Host bits of a CIDR are cleared; the first bad entry refuses the pool. */
export const poolOf = (texts: readonly string[]): Parsed<IntervalSet> => parseEntries(texts, parseCidrMasking, usable);
