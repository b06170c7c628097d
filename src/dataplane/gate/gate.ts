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
import { kernelProbeScript, kernelProbeSets, kernelProbeTable } from './kernel-probe.ts';
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
export interface GateSets {
  /**
   * Sets all that is held, in place of what was, for the time of the lease. Undefined when it is in force, else why
   * it is not. May be called with the same value forever; each such call begins the lease anew. One in which some come or go leaves the
   * others their lease: thousands of EIPs take the kernel tens of milliseconds, and somebody waits for what comes.
   */
  hold(held: readonly Hold[], leaseMs: number): string | undefined;
  /**
   * Begins the lease of some that are held anew. All that a node holds is prolonged in parts, so that its thread stands still only for a
   * moment each time. A part that the kernel does not hold any more is refused, and stays as it is.
   */
  prolong(some: readonly Hold[], leaseMs: number): string | undefined;
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
export interface Gate extends GateTables, GateSets {}

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
    const script = `${gateScript}${kernelProbeScript(device)}`;
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
      kernelProbeTable,
      ...movesTables,
    ];
    for (const { family, table } of tables) {
      const ended = await programs.run(['nft', 'delete', 'table', family, table]);
      if (ended.code !== 0 && !isStale(ended)) throw refusalOf(`delete the table of the gate of ${family}`, ended);
    }
  },
});

/**
 * The gate sets of the kernel, in the network namespace of the thread that calls. `sign` gives the numbers by which whoever
 * watches the main table knows its transactions. Throws NFT_REFUSED if there is no way to the kernel.
 */
export const openGateSets = (libc: Libc, sign: () => number): GateSets => {
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
  const elementOf = ({ ip, epoch }: Hold, leaseMs: number): SetElement => ({
    key: ipBytes(ip),
    timeoutMs: leaseMs,
    comment: `${epoch}`,
  });
  /** Two transactions: who answers is settled even while the main table is being replaced. */
  const tell = (
    { gone, come, isAll }: HoldChange,
    leaseMs: number,
    knocks: readonly SetContent[],
  ): string | undefined => {
    const contentOf = (place: Pick<SetContent, 'family' | 'set'>, isWanted: (hold: Hold) => boolean): SetContent => {
      const elements = come.filter(isWanted).map((hold) => elementOf(hold, leaseMs));
      const removed = gone.filter(isWanted).map(({ ip }) => ({ key: ipBytes(ip) }));
      return { ...place, ...(!isAll && { isKept: true, removed }), elements };
    };
    const answered = load([
      contentOf({ family: 'arp', set: HELD }, ({ ip, isAnswered }) => isAnswered && isIpv4(ip)),
      contentOf({ family: 'ip6', set: HELD }, ({ ip, isAnswered }) => isAnswered && isIpv6(ip)),
      ...knocks,
    ]);
    const signature = Buffer.alloc(4);
    signature.writeUInt32LE(sign());
    const sent = load([
      contentOf({ family: 'inet', set: OWNED.ipv4 }, ({ ip }) => isIpv4(ip)),
      contentOf({ family: 'inet', set: OWNED.ipv6 }, ({ ip }) => isIpv6(ip)),
      {
        family: 'inet',
        set: SIGNATURES,
        isKept: true,
        elements: [{ key: signature, timeoutMs: SIGNATURE_SECONDS * 1000 }],
      },
    ]);
    return answered ?? sent;
  };
  return {
    hold: (held, leaseMs) => {
      const hasMoves = held.some(({ other }) => other !== undefined);
      const change = changeOf(holding, held);
      // What comes on top of something ends with it, and so do the answers to knocks.
      const isFirst = change.isAll || holding?.size === 0 || held.length === 0;
      const knocks = isFirst ? kernelProbeSets(held.length > 0 ? leaseMs : undefined) : [];
      let refused = tell(change, leaseMs, knocks);
      // What was to go may be gone already: its lease was over.
      if (refused !== undefined && !change.isAll) {
        refused = tell(
          { gone: [], come: held, isAll: true },
          leaseMs,
          kernelProbeSets(held.length > 0 ? leaseMs : undefined),
        );
      }
      // Without its tables a move loses what is on its way; nothing else depends on them.
      if (hasMoves || wereMoves !== false) load(...movesIn(held));
      wereMoves = hasMoves;
      holding = refused === undefined ? new Map(held.map((one) => [one.ip, one])) : undefined;
      return refused;
    },
    prolong: (some, leaseMs) => {
      const isHeld = some.every((one) => isSameHold(one, holding?.get(one.ip)));
      return isHeld
        ? tell({ gone: some, come: some, isAll: false }, leaseMs, kernelProbeSets(leaseMs))
        : 'it is not held';
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

/** How what is held changes: everything is told anew, or only what goes and what comes. */
interface HoldChange {
  readonly gone: readonly Hold[];
  readonly come: readonly Hold[];
  readonly isAll: boolean;
}

/** Everything, when it is not known what is held, or when nothing is other: then somebody wants it to be told. */
const changeOf = (before: ReadonlyMap<Ip, Hold> | undefined, held: readonly Hold[]): HoldChange => {
  const all = { gone: [], come: held, isAll: true };
  if (before === undefined) return all;
  const come = held.filter((one) => !isSameHold(one, before.get(one.ip)));
  const now = new Map(held.map((one) => [one.ip, one]));
  const gone = [...before.values()].filter((one) => !isSameHold(one, now.get(one.ip)));
  return come.length + gone.length === 0 || held.length === 0 ? all : { gone, come, isAll: false };
};

/** The other node of a move is told anew each time, and is no difference. */
const isSameHold = (one: Hold, other: Hold | undefined): boolean =>
  other !== undefined && one.epoch === other.epoch && one.isAnswered === other.isAnswered;

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
export const joinGate = (tables: GateTables, gateSets: GateSets): Gate => ({
  ...tables,
  ...gateSets,
  prepare: async () => {
    await tables.prepare();
    // Tables that are made anew are empty.
    gateSets.doubt();
  },
});
