/**
 * Connections of pods of this node whose slot leaves through another node than when they began. A connection never gets another
 * translation: one that keeps its source cannot leave here, and one that has an EIP cannot leave elsewhere. Others of the same slot are
 * right and stay, such as those that were carried on; so each is changed by its own name, of whatever protocol it is.
 *
 * - What keeps its source and leaves here now is forgotten: its next packet makes a new one. What was carried on is none of them: the
 *   mirror has exchanged it.
 * - What has an EIP and leaves elsewhere now is made anew with its own source, as any connection of a pod of a worker is. To forget it is not
 *   enough: what the server says next would find no connection here, and a pod that only listens would never make one. What the
 *   other node cannot know (ping, UDP that has just begun, TCP that is being opened) is forgotten, or stays while this node carries the EIP.
 */
import { SLOT_KIND, SLOT_MASK } from '../../core/node/numbers.ts';
import type { Libc } from '../libc.ts';
import { changeEntries } from './entries.ts';

/** Slots that leave from this node now, and slots that did and leave elsewhere; of the latter, those whose EIP is still carried here. */
export interface Turned {
  readonly here: ReadonlySet<number>;
  readonly elsewhere: ReadonlySet<number>;
  readonly carried: ReadonlySet<number>;
}

/** Forgets or changes them; returns how many there were. Throws CONNTRACK_FAILED; then some may be left. */
export type DropStaleConnections = (turned: Turned) => number;

// All bits of a connection mark that are the same for every slot.
const ofSlots = { mark: SLOT_KIND, mask: 0xffffc000 } as const;

/** For the table of the network namespace of whoever calls. */
export const createDropStaleConnections =
  (libc: Libc): DropStaleConnections =>
  (turned) =>
    changeEntries(libc, ofSlots, ({ source, answered, mark }) => {
      const slot = mark & SLOT_MASK;
      if (source === answered) return turned.here.has(slot) ? 'forget' : undefined;
      if (turned.carried.has(slot)) return { keepSource: 'or stay' };
      return turned.elsewhere.has(slot) ? { keepSource: 'or forget' } : undefined;
    });
