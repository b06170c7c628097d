/**
 * Cuts connections that are open and may not go on, because they began without the policies that their pods are under. Whoever
 * calls says which (src/core/node/existing.ts). One listing, however many pods there are.
 *
 * - What is forgotten begins anew with its next packet, and policies decide about it: UDP and ping go on with the EIP.
 * - An open TCP connection cannot begin anew. Forgotten, it would look dead to nobody but the server: a pod that only waits would never
 *   hear of it. So it stays and gets the mark of what nothing serves: what the server says still arrives, and whatever the pod
 *   sends, an acknowledgement too, is answered with a reset by the rules (`forward_slot`). The entry ends by itself then.
 */
import { networkInterfaces } from 'node:os';
import { type Ip, parseIp } from '../../core/ip/index.ts';
import type { CutOf, MustGo } from '../../core/node/existing.ts';
import { DROP } from '../../core/node/numbers.ts';
import type { Libc } from '../libc.ts';
import type { AddressBytes } from './connection.ts';
import { changeEntries, ipOf } from './entries.ts';

/** Cuts them; returns how many there were. Throws CONNTRACK_FAILED; then some may be left. */
export type Cut = (cutOf: CutOf) => number;

// The kernel can be asked for connections with a mark, and not for those without one of ours: other programs have marks too.
const anyMark = { mark: 0, mask: 0 } as const;

/** For the table of the network namespace of whoever calls. */
export const createCut =
  (libc: Libc): Cut =>
  (cutOf) => {
    const own = ownAddresses();
    // A pod has many connections, and is asked about once.
    const rulings = new Map<AddressBytes, MustGo | undefined>();
    const rulingOf = (source: AddressBytes): MustGo | undefined => {
      if (rulings.has(source)) return rulings.get(source);
      const ip = ipOf(source);
      const ruling = ip && cutOf(ip);
      rulings.set(source, ruling);
      return ruling;
    };
    return changeEntries(libc, anyMark, ({ source, answerer, isOpenTcp, mark }) => {
      const ruling = rulingOf(source);
      const destination = ruling && ipOf(answerer);
      if (ruling === undefined || destination === undefined || own.has(destination)) return undefined;
      if (!ruling(destination, mark)) return undefined;
      return isOpenTcp ? { mark: DROP } : 'forget';
    });
  };

/** The addresses of this node: what is for the node itself never leaves, whatever policies say. */
const ownAddresses = (): ReadonlySet<Ip> => {
  const texts = Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
  return new Set(texts.map(parseIp).flatMap((parsed) => (parsed.ok ? [parsed.value] : [])));
};
