/**
 * Connections is the part of the connection table that another node could carry on: TCP and UDP connections that came through
 * the tunnel or from a pod of this node, leave with an EIP, and have heard from both sides. It lists them, tells when one
 * comes or goes, and makes those that another node had. Nothing here waits: the kernel answers a netlink request before
 * the call returns.
 */
import { EgressError } from '../../api/error.ts';
import { KIND_MASK, SLOT_KIND } from '../../core/node/numbers.ts';
import { EEXIST, errorText, type FilterStep, type Libc } from '../libc.ts';
import { type NetfilterSocket, openNetfilterSocket } from '../netfilter-socket.ts';
import { answerIn, eachMessage, NETFILTER_BYTES, type NetlinkMessage } from '../netlink/message.ts';
import { type AddressBytes, type Connection, type ConnectionKey, protocolOf, protocols } from './connection.ts';
import { attributes, WORTHY } from './ctnetlink.ts';
import { type ConnectionEvent, connectionEventIn, entryIn } from './heard.ts';
import { REQUEST_BYTES, Requests } from './requests.ts';
import type { TimeoutSeconds } from './timeouts.ts';

export interface Connections {
  /** Calls back for each connection that there is. Throws CONNTRACK_FAILED; then it has called back for some of them. */
  list(visit: (connection: Connection) => void): void;
  /** Subscribes to changes from now on. Throws CONNTRACK_FAILED. */
  watch(): ConnectionFeed;
  /**
   * Makes connections; may be called twice with the same ones. What another node had is right, so what is in its way here goes: a
   * connection of the same name with another translation, as pods of this node have that used another gateway node, and one
   * that has got the port of the EIP. One that is here already is open again, whatever this node remembers of it: it
   * may have gone on elsewhere since. Those with the mark `own` are of pods of this node: they are exchanged and keep their mark, and
   * where there is none of the name, the next packet of the pod makes one. Throws CONNTRACK_FAILED; then some may be there.
   */
  put(connections: Iterable<Connection>, own?: number): PutOutcome;
  /**
   * Forgets the TCP connections of EIPs that are over and only remembered; returns how many there were. Their names are used again, and
   * packets of the new ones would be judged by the old. Throws CONNTRACK_FAILED; then some may be left.
   */
  forgetOver(eips: ReadonlySet<AddressBytes>): number;
}

/** An open subscription. */
export interface ConnectionFeed {
  /**
   * Calls back for changes since the last call, in order, `at most` many; true when there may be more. After `lost` list again: the
   * kernel had to throw some away.
   */
  receive(limit: number, visit: (heard: ConnectionEvent) => void): 'all' | 'more' | 'lost';
  /** May be called twice. */
  close(): void;
}

export interface PutOutcome {
  /** Made, or there already. */
  readonly written: number;
  /** Refused by the kernel: above all, the table is full. */
  readonly refused: number;
}

export interface ConnectionsDeps {
  readonly libc: Libc;
  /** What the kernel of this node would give such connections itself. */
  readonly timeouts: () => TimeoutSeconds;
}

// Marks of slots and of replies differ in the lowest bit of their kind only.
const ours = { mark: SLOT_KIND, mask: 0xfe000000 } as const;
const groups = { update: 2, destroy: 3 } as const;
// Room for some ten thousand changes between two looks.
const WATCH_BYTES = 16 * 1024 * 1024;
const ASK_BYTES = 4 * 1024 * 1024;
// An answer of a few hundred bytes may come for each.
const AT_ONCE = 64;

// Classic BPF: the offset of an attribute, looked for from A on; X is its type (SKF_AD_NLATTR in linux/filter.h).
const FIND: FilterStep = [0x20, 0, 0, 0xfffff00c];
/**
 * What the kernel tells of changes, so that the traffic of the node passes by: connections with a mark of ours that are worth
 * carrying on. Find the mark, compare its kind; find the status, compare its bits; take the message, or nothing of it.
 */
const CHANGES_FILTER: readonly FilterStep[] = [
  [0x00, 0, 0, NETFILTER_BYTES],
  [0x01, 0, 0, attributes.mark],
  FIND,
  [0x15, 12, 0, 0],
  [0x07, 0, 0, 0],
  [0x40, 0, 0, 4],
  [0x54, 0, 0, ours.mask],
  [0x15, 0, 8, ours.mark],
  [0x00, 0, 0, NETFILTER_BYTES],
  [0x01, 0, 0, attributes.status],
  FIND,
  [0x15, 4, 0, 0],
  [0x07, 0, 0, 0],
  [0x40, 0, 0, 4],
  [0x54, 0, 0, WORTHY],
  [0x15, 1, 0, WORTHY],
  [0x06, 0, 0, 0],
  [0x06, 0, 0, 0xffff],
];

/** The connections of this node, or rather of the network namespace of whoever calls. */
export const createConnections = ({ libc, timeouts }: ConnectionsDeps): Connections => {
  const open = (what: string, options: Parameters<typeof openNetfilterSocket>[1]): NetfilterSocket => {
    const socket = openNetfilterSocket(libc, options);
    if (typeof socket === 'number') throw failed(what, socket);
    return socket;
  };
  const ask = <T>(what: string, work: (socket: NetfilterSocket) => T): T => {
    const socket = open(what, { groups: [], bufferBytes: ASK_BYTES });
    try {
      return work(socket);
    } finally {
      socket.close();
    }
  };

  /** All that are worth carrying on, or were. */
  const list = (visit: (heard: ConnectionEvent) => void): void =>
    ask('list connections', (socket) => {
      const requests = new Requests(REQUEST_BYTES);
      requests.list(1, ours);
      must('list connections', socket.send(requests.bytes));
      for (let isDone = false; !isDone; ) {
        const piece = socket.receive();
        // A listing goes on while it is read, so something always waits until it is done.
        if (piece === undefined || piece === 'lost') throw failed('list connections');
        eachMessage(piece, (message) => {
          const error = answerIn(piece, message);
          if (error !== undefined) {
            must('list connections', error);
            isDone = true;
            return;
          }
          const heard = connectionEventIn(piece, message);
          if (heard !== undefined && isOurs(heard.connection)) visit(heard);
        });
      }
    });

  return {
    list: (visit) =>
      list(({ kind, connection }) => {
        if (kind === 'open') visit(connection);
      }),
    forgetOver: (eips) => {
      const over: ConnectionKey[] = [];
      list(({ kind, connection }) => {
        if (kind === 'closed' && eips.has(connection.eip)) over.push(connection.key);
      });
      return ask('forget connections', (socket) => {
        const table = new Table(socket, timeouts());
        for (const some of chunksOf(over, AT_ONCE)) table.forget(some);
        return over.length;
      });
    },
    watch: () => {
      const socket = open('listen to connections', {
        groups: Object.values(groups),
        bufferBytes: WATCH_BYTES,
        filter: CHANGES_FILTER,
      });
      return {
        receive: (limit, visit) => {
          for (let count = 0; count < limit; count += 1) {
            const piece = socket.receive();
            if (piece === undefined) return 'all';
            if (piece === 'lost') return 'lost';
            eachMessage(piece, (message) => {
              const heard = connectionEventIn(piece, message);
              if (heard !== undefined) visit(heard);
            });
          }
          return 'more';
        },
        close: () => socket.close(),
      };
    },
    put: (connections, own) =>
      ask('make connections', (socket) => {
        const table = new Table(socket, timeouts());
        let outcome: PutOutcome = { written: 0, refused: 0 };
        for (const some of chunksOf(connections, AT_ONCE)) {
          const { written, refused } = table.put(some, own);
          outcome = { written: outcome.written + written, refused: outcome.refused + refused };
        }
        return outcome;
      }),
  };
};

/** Makes some connections at a time. */
class Table {
  readonly #socket: NetfilterSocket;
  readonly #requests = new Requests(AT_ONCE * 3 * REQUEST_BYTES);
  readonly #timeouts: TimeoutSeconds;

  constructor(socket: NetfilterSocket, timeouts: TimeoutSeconds) {
    this.#socket = socket;
    this.#timeouts = timeouts;
  }

  put(all: readonly Connection[], own: number | undefined): PutOutcome {
    const ofPodsHere = all.filter(({ mark }) => mark === own);
    const connections = ofPodsHere.length === 0 ? all : all.filter(({ mark }) => mark !== own);
    const errors = this.#create(connections);
    const taken = [...connections.filter((_, index) => errors.get(index) === EEXIST), ...ofPodsHere];
    if (taken.length === 0) return { written: all.length - errors.size, refused: errors.size };
    const different = this.#compare(taken, own);
    const same = new Set(taken.map(({ key }) => key)).difference(new Set(different.map(({ key }) => key)));
    this.#requests.clear();
    for (const key of same) if (protocolOf(key) === protocols.tcp) this.#requests.reopen(0, key, this.#timeouts.tcp);
    for (const connection of different) {
      this.#requests.delete(0, connection.key);
      this.#requests.deleteByReplies(0, connection);
    }
    // In one call: packets of these connections come meanwhile, and the first one would make an entry of its own.
    const again = this.#create(different, false);
    const refused = errors.size - (taken.length - ofPodsHere.length) + again.size;
    return { written: all.length - refused, refused };
  }

  /** Those that ended meanwhile are answered as not found, which is what was wanted. */
  forget(keys: readonly ConnectionKey[]): void {
    this.#requests.clear();
    for (const key of keys) this.#requests.delete(0, key);
    must('forget connections', this.#socket.send(this.#requests.bytes));
    this.#answers(() => {});
  }

  /** Creates; index of a connection -> error, for those that were refused. */
  #create(connections: readonly Connection[], isFirst = true): ReadonlyMap<number, number> {
    if (isFirst) this.#requests.clear();
    for (const [index, connection] of connections.entries()) {
      const { tcp, udp } = this.#timeouts;
      this.#requests.create(index + 1, connection, protocolOf(connection.key) === protocols.tcp ? tcp : udp);
    }
    const errors = new Map<number, number>();
    if (this.#requests.size === 0) return errors;
    must('make connections', this.#socket.send(this.#requests.bytes));
    this.#answers((piece, message) => {
      const error = answerIn(piece, message);
      if (error !== undefined && error !== 0 && message.sequence > 0) errors.set(message.sequence - 1, error);
    });
    return errors;
  }

  /** Those that are not there as they should be, each with the mark that it gets; without those of pods of this node that are not there at all. */
  #compare(taken: readonly Connection[], own: number | undefined): Connection[] {
    this.#requests.clear();
    for (const [index, { key }] of taken.entries()) this.#requests.get(index + 1, key);
    must('make connections', this.#socket.send(this.#requests.bytes));
    const foundByKey = new Map<ConnectionKey, Connection>();
    this.#answers((piece, message) => {
      const entry = entryIn(piece, message);
      if (entry !== undefined) foundByKey.set(entry.connection.key, entry.connection);
    });
    return taken.flatMap((wanted) => {
      const found = foundByKey.get(wanted.key);
      if (found === undefined && wanted.mark === own) return [];
      if (found?.eip === wanted.eip && found.eipPort === wanted.eipPort) return [];
      // A pod of this node knows its slot; whoever had the connection only knows this node.
      const isOfPodHere = found !== undefined && kindOf(found.mark) === SLOT_KIND;
      return [isOfPodHere ? { ...wanted, mark: found.mark } : wanted];
    });
  }

  #answers(visit: (piece: Buffer, message: NetlinkMessage) => void): void {
    for (;;) {
      const piece = this.#socket.receive();
      if (piece === undefined || piece === 'lost') return;
      eachMessage(piece, (message) => visit(piece, message));
    }
  }
}

const kindOf = (mark: number): number => (mark & KIND_MASK) >>> 0;
const isOurs = ({ mark }: Connection): boolean => (mark & ours.mask) >>> 0 === ours.mark;

const chunksOf = function* <T>(values: Iterable<T>, size: number): Generator<readonly T[]> {
  let chunk: T[] = [];
  for (const value of values) {
    chunk.push(value);
    if (chunk.length < size) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
};

const must = (what: string, errno: number): void => {
  if (errno !== 0) throw failed(what, errno);
};

const failed = (what: string, errno?: number): EgressError =>
  new EgressError('CONNTRACK_FAILED', `${what}: ${errno === undefined ? 'the kernel breaks off' : errorText(errno)}`);
