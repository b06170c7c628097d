/** Connections in memory. */
import { KIND_MASK, SLOT_KIND } from '../../../core/node/numbers.ts';
import type { AddressBytes, Connection, ConnectionKey } from '../connection.ts';
import { isSameConnection } from '../connection.ts';
import type { Connections } from '../connections.ts';
import type { ConnectionEvent } from '../heard.ts';

/** An entry: without an EIP the connection keeps its source. */
interface Entry extends Omit<Connection, 'eip'> {
  readonly eip: AddressBytes | undefined;
}

export interface FakeConnections extends Connections {
  /** Somebody else makes a connection and both sides speak; `kept` for one that keeps its source. */
  talk(connection: Connection, eip?: 'kept'): void;
  /** Somebody else deletes it. */
  end(key: ConnectionKey): void;
  /** Both sides say good-bye: it is over, and remembered for a while. */
  part(key: ConnectionKey): void;
  read(key: ConnectionKey): Entry | undefined;
  /** What leaves with an EIP and is not over, in no special order. */
  readonly all: readonly Connection[];
  /** From the next look on, changes are lost until somebody has looked. */
  loseChanges(): void;
}

/** An empty table. */
export const createFakeConnections = (): FakeConnections => {
  const entries = new Map<ConnectionKey, Entry>();
  const over = new Set<ConnectionKey>();
  const feeds = new Set<{ queue: ConnectionEvent[]; isLost: boolean }>();
  const tell = (kind: ConnectionEvent['kind'], entry: Entry): void => {
    const { eip } = entry;
    if (eip === undefined || !hasOurMark(entry)) return;
    for (const { queue } of feeds) queue.push({ kind, connection: { ...entry, eip } });
  };
  /** The connection that has the port of the EIP which another one is to have. */
  const holderOf = ({ key, eip, eipPort }: Connection): Entry | undefined =>
    entries
      .values()
      .find(
        (other) =>
          other.key !== key &&
          other.eip === eip &&
          other.eipPort === eipPort &&
          outsideOf(other.key) === outsideOf(key),
      );
  const remove = (key: ConnectionKey): void => {
    entries.delete(key);
    over.delete(key);
  };
  const put = (wanted: Connection, own: number | undefined): void => {
    const found = entries.get(wanted.key);
    if (found === undefined && wanted.mark === own) return;
    over.delete(wanted.key);
    if (found?.eip === wanted.eip && found.eipPort === wanted.eipPort) return;
    const holder = holderOf(wanted);
    if (holder !== undefined) remove(holder.key);
    const isOfPodHere = found !== undefined && (found.mark & KIND_MASK) >>> 0 === SLOT_KIND;
    entries.set(wanted.key, isOfPodHere ? { ...wanted, mark: found.mark } : wanted);
  };
  return {
    talk: (connection, eip) => {
      const entry = eip === 'kept' ? { ...connection, eip: undefined } : connection;
      over.delete(connection.key);
      entries.set(connection.key, entry);
      tell('open', entry);
    },
    end: (key) => {
      const entry = entries.get(key);
      remove(key);
      if (entry !== undefined) tell('closed', entry);
    },
    part: (key) => {
      const entry = entries.get(key);
      if (entry === undefined) return;
      over.add(key);
      tell('closed', entry);
    },
    read: (key) => entries.get(key),
    get all() {
      const open = entries.values().filter(({ key }) => !over.has(key));
      return [...open].flatMap((entry) => (entry.eip === undefined ? [] : [{ ...entry, eip: entry.eip }]));
    },
    loseChanges: () => {
      for (const feed of feeds) {
        feed.queue = [];
        feed.isLost = true;
      }
    },
    list(visit) {
      for (const connection of this.all) if (hasOurMark(connection)) visit(connection);
    },
    watch: () => {
      const feed: { queue: ConnectionEvent[]; isLost: boolean } = { queue: [], isLost: false };
      feeds.add(feed);
      return {
        receive: (limit, visit) => {
          if (feed.isLost) {
            feed.isLost = false;
            feed.queue = [];
            return 'lost';
          }
          for (const heard of feed.queue.splice(0, limit)) visit(heard);
          return feed.queue.length > 0 ? 'more' : 'all';
        },
        close: () => {
          feeds.delete(feed);
        },
      };
    },
    forgetOver: (eips) => {
      const gone = [...over].filter((key) => {
        const eip = entries.get(key)?.eip;
        return eip !== undefined && eips.has(eip);
      });
      for (const key of gone) remove(key);
      return gone.length;
    },
    put: (connections, own) => {
      const all = [...connections];
      for (const wanted of all) put(wanted, own);
      return { written: all.length, refused: 0 };
    },
  };
};

const hasOurMark = ({ mark }: Pick<Entry, 'mark'>): boolean => (mark & 0xfe000000) >>> 0 === SLOT_KIND;

/** Protocol, destination port and destination: a port of an EIP may be used once for each. */
const outsideOf = (key: ConnectionKey): string =>
  key.slice(0, 1) + key.slice(3, 5) + key.slice(5 + (key.length - 5) / 2);

/** For assertions: the same connections, whatever the order. */
export const areSameConnections = (a: readonly Connection[], b: readonly Connection[]): boolean => {
  const byKey = new Map(b.map((connection) => [connection.key, connection]));
  return (
    a.length === b.length &&
    a.every((connection) => {
      const other = byKey.get(connection.key);
      return other !== undefined && isSameConnection(connection, other);
    })
  );
};
