/**
 * Connections of pods of this node whose slot leaves through another node than when they began. A connection never gets another
 * translation: one that keeps its source cannot leave here, and one that has an EIP cannot leave elsewhere. Forgotten, their
 * next packet makes a new one. Others of the same slot are right and stay, such as those that were carried on; so each
 * is forgotten by its own name, of whatever protocol it is.
 */
import { SLOT_KIND, SLOT_MASK } from '../../core/node/numbers.ts';
import type { Libc } from '../libc.ts';
import { changeEntries } from './entries.ts';

/** Slots that leave from this node now, and slots that did and leave elsewhere. */
export interface Turned {
  readonly here: ReadonlySet<number>;
  readonly elsewhere: ReadonlySet<number>;
}

/** Forgets them; returns how many there were. Throws CONNTRACK_FAILED; then some may be left. */
export type ForgetStrays = (turned: Turned) => number;

// All bits of a connection mark that are the same for every slot.
const ofSlots = { mark: SLOT_KIND, mask: 0xffffc000 } as const;

/** For the table of the network namespace of whoever calls. */
export const createForgetStrays =
  (libc: Libc): ForgetStrays =>
  (turned) =>
    changeEntries(libc, ofSlots, ({ source, answered, mark }) => {
      const keepsSource = source === answered;
      return (keepsSource ? turned.here : turned.elsewhere).has(mark & SLOT_MASK) ? 'forget' : undefined;
    });
