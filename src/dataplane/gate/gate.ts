/**
 * The gate decides, within microseconds and without starting a program, which EIPs of this node are in use. Everything
 * else about an EIP (its address, its proxy entry, its slots) lies ready on every node that may come to own it; the gate
 * alone says whether the kernel answers for it and lets its packets out. It shuts by itself: what is not held again within
 * the lease is let go by the kernel, whatever has become of the agent. Read Gate first.
 */
import { EgressError } from '../../api/error.ts';
import { type Ip, ipBytes, isIpv4, isIpv6, parseIp } from '../../core/ip/index.ts';
import { errorText, type Libc } from '../libc.ts';
import { openNetfilterSocket } from '../netfilter-socket.ts';
import { isRecord, parseListing } from '../nft/listing.ts';
import { isStale, refusalOf } from '../nft/refusal.ts';
import { OWNED, SIGNATURE_SECONDS, SIGNATURES, TABLE } from '../nft/stored.ts';
import type { Programs } from '../program.ts';
import { knockIn, knockScript, knockTable } from './kernel-probe.ts';
import { movesIn, movesScript, movesTables, type Other } from './moves.ts';
import { batchOf, errorIn, type SetContent, type SetElement, type TableState } from './set-batch.ts';

/** An EIP that packets may leave with. */
export interface Hold {
  readonly ip: Ip;
  readonly epoch: number;
  /** False: the kernel translates its packets but does not answer for it. */
  readonly isAnswered: boolean;
  /** The other node of a move by plan, which gets what comes for the EIP and belongs to no connection here; see moves.ts. */
  readonly other?: Other;
}

/** An EIP that the kernel answers for. */
export interface InKernel extends Pick<Hold, 'ip' | 'epoch'> {
  /** For how long at the least it will, if nobody tells it to. */
  readonly leftMs: number;
}

/** The part of the gate that is used all the time: sets what is held, and returns at once. */
export interface Latch {
  /**
   * Sets all that is held, in place of what was, for the time of the lease. Undefined when it is in force, else why
   * it is not. May be called with the same value forever; each such call begins the lease anew. One that merely adds to what was
   * held leaves the others their lease: the kernel waits for the end of what is taken out, and somebody waits for what comes.
   */
  hold(held: readonly Hold[], leaseMs: number): string | undefined;
  /**
   * Sets all addresses for which the kernel answers only while they are held. Undefined when it is in force, else why not. Only what
   * differs from the last call is told to the kernel, and everything if nothing does.
   */
  cover(ips: readonly Ip[]): string | undefined;
  /** Says that the kernel may hold something else than it was told: the next calls tell everything. */
  doubt(): void;
  /** May be called twice. */
  close(): void;
}

/** The part that takes programs: at the start, at the end, and when somebody has broken it. */
export interface GateTables {
  /** Makes the tables of the gate, or mends them; what they hold stays. Rejects with NFT_REFUSED. */
  prepare(): Promise<void>;
  /** What is held and answered for; undefined without the tables. */
  read(): Promise<readonly InKernel[] | undefined>;
  /** Takes the tables away. May be called twice. */
  remove(): Promise<void>;
}

/** Both. */
export interface Gate extends GateTables, Latch {}

/** The sets of the two tables; `owned4` and `owned6` in the main table are the third part. */
export const COVERED = 'covered';
export const HELD = 'held';

/**
 * The tables, so that they can be loaded over what is there. ARP requests and neighbour solicitations never come to who
 * would answer them. And the node asks nobody in the name of an EIP that it does not hold: Linux asks for its next hop in
 * that of the packet's source address, and whoever is asked would take the node for the owner. The target of a solicitation has no name in nft 1.0.6, so its place is told (RFC 4861 section 4.3).
 */
export const gateScript = [
  `add table arp ${TABLE}`,
  `add set arp ${TABLE} ${COVERED} { type ipv4_addr; }`,
  `add set arp ${TABLE} ${HELD} { type ipv4_addr; flags timeout; }`,
  `add chain arp ${TABLE} ask { type filter hook input priority filter; policy accept; }`,
  `flush chain arp ${TABLE} ask`,
  `add rule arp ${TABLE} ask arp operation request arp daddr ip @${COVERED} arp daddr ip != @${HELD} drop`,
  `add chain arp ${TABLE} speak { type filter hook output priority filter; policy accept; }`,
  `flush chain arp ${TABLE} speak`,
  `add rule arp ${TABLE} speak arp saddr ip @${COVERED} arp saddr ip != @${HELD} drop`,
  `add table ip6 ${TABLE}`,
  `add set ip6 ${TABLE} ${COVERED} { typeof @th,64,128; }`,
  `add set ip6 ${TABLE} ${HELD} { typeof @th,64,128; flags timeout; }`,
  `add chain ip6 ${TABLE} ask { type filter hook input priority filter - 10; policy accept; }`,
  `flush chain ip6 ${TABLE} ask`,
  `add rule ip6 ${TABLE} ask icmpv6 type nd-neighbor-solicit @th,64,128 @${COVERED} @th,64,128 != @${HELD} drop`,
  '',
].join('\n');

/** The tables of the gate in the network namespace in which the programs run; `device` is that of the tunnel. */
export const createGateTables = (programs: Programs, device: string): GateTables => ({
  prepare: async () => {
    const script = `${gateScript}${knockScript(device)}`;
    const ended = await programs.run(['nft', '-f', '-'], { input: script });
    if (ended.code !== 0) throw refusalOf('make the tables of the gate', ended, script);
    // A kernel that cannot copy packets goes without: then a move by plan may lose those that are on their way.
    await programs.run(['nft', '-f', '-'], { input: movesScript(device) });
  },
  read: async () => {
    const held: InKernel[] = [];
    for (const family of ['arp', 'ip6'] as const) {
      const ended = await programs.run(['nft', '-j', 'list', 'set', family, TABLE, HELD]);
      if (ended.code === 0) held.push(...heldIn(ended.stdout));
      else if (isStale(ended)) return undefined;
      else throw refusalOf(`list the set ${HELD} of ${family}`, ended);
    }
    return held;
  },
  remove: async () => {
    const tables = [
      ...(['arp', 'ip6'] as const).map((family) => ({ family, table: TABLE })),
      knockTable,
      ...movesTables,
    ];
    for (const { family, table } of tables) {
      const ended = await programs.run(['nft', 'delete', 'table', family, table]);
      if (ended.code !== 0 && !isStale(ended)) throw refusalOf(`delete the table of the gate of ${family}`, ended);
    }
  },
});

/**
 * The latch of the kernel, in the network namespace of the thread that calls. `sign` gives the numbers by which whoever
 * watches the main table knows its transactions. Throws NFT_REFUSED if there is no way to the kernel.
 */
export const openLatch = (libc: Libc, sign: () => number): Latch => {
  const socket = openNetfilterSocket(libc, { groups: [], bufferBytes: BUFFER_BYTES, sendBytes: BUFFER_BYTES });
  if (typeof socket === 'number') {
    throw new EgressError('NFT_REFUSED', `open a socket to nftables: ${errorText(socket)}`);
  }
  let wereMoves: boolean | undefined;
  let covered: ReadonlySet<Ip> | undefined;
  let holding: ReadonlyMap<Ip, Hold> | undefined;
  const load = (contents: readonly SetContent[], tables: readonly TableState[] = []): string | undefined => {
    const refused = socket.send(batchOf(contents, tables));
    if (refused !== 0) return errorText(refused);
    // The kernel has done all of it, and answered, before sending returns.
    const answers: Buffer[] = [];
    for (let answer = socket.receive(); answer !== undefined; answer = socket.receive()) {
      if (answer === 'lost') return 'the kernel could not answer';
      answers.push(answer);
    }
    const error = errorIn(answers);
    return error === 0 ? undefined : errorText(error);
  };
  return {
    hold: (held, leaseMs) => {
      const hasMoves = held.some(({ other }) => other !== undefined);
      const added = hasMoves || wereMoves !== false ? [] : addedTo(holding, held);
      const isAdding = added.length > 0;
      const elementOf = ({ ip, epoch }: Hold): SetElement => ({
        key: ipBytes(ip),
        timeoutMs: leaseMs,
        comment: `${epoch}`,
      });
      const fill = (family: SetContent['family'], set: string, some: readonly Hold[]): SetContent => ({
        family,
        set,
        ...(isAdding && { isKept: true }),
        elements: some.map(elementOf),
      });
      const told = isAdding ? added : held;
      const [held4, held6] = [told.filter(({ ip }) => isIpv4(ip)), told.filter(({ ip }) => isIpv6(ip))];
      const isAnswered = (one: Hold): boolean => one.isAnswered;
      // Two transactions: who answers is settled even while the main table is being replaced.
      const answered = load([
        fill('arp', HELD, held4.filter(isAnswered)),
        fill('ip6', HELD, held6.filter(isAnswered)),
        // What comes on top of something ends with it, and so do the answers to knocks.
        ...(isAdding && holding?.size !== 0 ? [] : knockIn(held.length > 0 ? leaseMs : undefined)),
      ]);
      const signature = Buffer.alloc(4);
      signature.writeUInt32LE(sign());
      const sent = load([
        fill('inet', OWNED.ipv4, held4),
        fill('inet', OWNED.ipv6, held6),
        {
          family: 'inet',
          set: SIGNATURES,
          isKept: true,
          elements: [{ key: signature, timeoutMs: SIGNATURE_SECONDS * 1000 }],
        },
      ]);
      // Without its tables a move loses what is on its way; nothing else depends on them.
      if (hasMoves || wereMoves !== false) load(...movesIn(held));
      wereMoves = hasMoves;
      const refused = answered ?? sent;
      holding = refused === undefined ? new Map(held.map((one) => [one.ip, one])) : undefined;
      return refused;
    },
    cover: (ips) => {
      const wanted = new Set(ips);
      const change = covered && coverChange(covered, wanted);
      const isDone = change !== undefined && load(change) === undefined;
      const refused = isDone ? undefined : load(coverAll(wanted));
      covered = refused === undefined ? wanted : undefined;
      return refused;
    },
    doubt: () => {
      covered = undefined;
      holding = undefined;
    },
    close: () => socket.close(),
  };
};

/** What is held on top of what was; nothing if something was held that is no longer so, or if nothing comes. */
const addedTo = (before: ReadonlyMap<Ip, Hold> | undefined, held: readonly Hold[]): readonly Hold[] => {
  if (before === undefined) return [];
  const added = held.filter(({ ip }) => !before.has(ip));
  const isSame = (one: Hold): boolean => {
    const known = before.get(one.ip);
    return known === undefined || (known.epoch === one.epoch && known.isAnswered === one.isAnswered);
  };
  return held.length - added.length === before.size && held.every(isSame) ? added : [];
};

/** The sets of covered addresses, each with the test for its family. */
const coveredSets = [
  { family: 'arp', set: COVERED, isFamily: isIpv4 },
  { family: 'ip6', set: COVERED, isFamily: isIpv6 },
] as const;

const keysOf = (ips: Iterable<Ip>, isFamily: (ip: Ip) => boolean): readonly SetElement[] =>
  Iterator.from(ips)
    .filter(isFamily)
    .map((ip) => ({ key: ipBytes(ip) }))
    .toArray();

const coverAll = (ips: ReadonlySet<Ip>): readonly SetContent[] =>
  coveredSets.map(({ family, set, isFamily }) => ({ family, set, elements: keysOf(ips, isFamily) }));

/** How the sets of covered addresses change; undefined when nothing does. */
const coverChange = (before: ReadonlySet<Ip>, after: ReadonlySet<Ip>): readonly SetContent[] | undefined => {
  const gone = [...before].filter((ip) => !after.has(ip));
  const come = [...after].filter((ip) => !before.has(ip));
  if (gone.length + come.length === 0) return undefined;
  return coveredSets.map(({ family, set, isFamily }) => ({
    family,
    set,
    isKept: true,
    removed: keysOf(gone, isFamily),
    elements: keysOf(come, isFamily),
  }));
};

// Room for a transaction of fifty thousand elements of 80 bytes, and for the answers to it.
const BUFFER_BYTES = 4 * 1024 * 1024;

const heldIn = (json: string): readonly InKernel[] =>
  parseListing(json).flatMap(({ kind, fields }) => {
    if (kind !== 'set' || !Array.isArray(fields.elem)) return [];
    return fields.elem.flatMap((one: unknown) => {
      const elem = isRecord(one) && isRecord(one.elem) ? one.elem : undefined;
      const ip = typeof elem?.val === 'string' ? parseIp(addressText(elem.val)) : undefined;
      if (ip?.ok !== true) return [];
      const [epoch, leftSeconds] = [elem?.comment, elem?.expires].map(
        (value) => Number.parseInt(String(value), 10) || 0,
      );
      return [{ ip: ip.value, epoch: epoch ?? 0, leftMs: 1_000 * (leftSeconds ?? 0) }];
    });
  });

/** A set of targets has no type that nft knows, so it prints them as one long number. */
const addressText = (text: string): string =>
  text.startsWith('0x') ? (text.slice(2).padStart(32, '0').match(/.{4}/g)?.join(':') ?? text) : text;

/** Both parts as one: the programs and the socket are of the same network namespace. */
export const joinGate = (tables: GateTables, latch: Latch): Gate => ({
  ...tables,
  ...latch,
  prepare: async () => {
    await tables.prepare();
    // Tables that are made anew are empty.
    latch.doubt();
  },
});
