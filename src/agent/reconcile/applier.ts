/**
 * Applier makes the kernel of the node what a NodeDesired says, in the order in which nothing leaks:
 *
 *   cover EIPs that only the gate may open -> grow: devices, addresses, routes that are missing -> settings -> table, in
 *   one transaction -> trim: what is no longer wanted -> uncover -> announce EIPs, where no gate does -> forget
 *   connections of slots and EIPs that are gone, or that left elsewhere until now
 *
 * So a packet that the table sends somewhere finds its way there, and one that still comes by an old way is no longer
 * sent on it. When the table is refused, what the kernel has stays in force, and nothing of it is trimmed.
 *
 * On a node without a table, such as one that has just booted, the table comes before everything else: the first thing that
 * a new tunnel device brings are packets of workers, and without a table they would leave with the address of the node.
 */
import { isDeepStrictEqual } from 'node:util';
import { EgressError } from '../../api/error.ts';
import { type Finding, finding } from '../../core/cluster/finding.ts';
import type { Ip } from '../../core/ip/index.ts';
import type { NetworkDesired, NodeDesired, NodeProblem, TableDesired } from '../../core/node/desired.ts';
import { isSameSet } from '../../core/values/equality.ts';
import type { Kernel, KernelPart } from '../kernel/kernel.ts';
import { ExistingConnections } from './existing.ts';
import { type Connected, type GateNow, StaleConnections } from './stale-connections.ts';

/** Told about what applying did. */
export interface ApplierHooks {
  /** Something that was as it should be had been changed by somebody else, and was put back. */
  repaired(part: KernelPart, changes: number): void;
  /** Something was changed because it was to be changed. */
  changed(part: KernelPart, changes: number): void;
  /** Connections were cut that had begun without the policies of their pods. */
  cut(connections: number): void;
  /** Connections that must go could not be forgotten; it is tried again. */
  forgetFailed(error: EgressError): void;
  /** The table was made anew, and sets that others fill are empty. */
  replaced(): void;
}

/** What became of a NodeDesired. */
export interface ApplyResult {
  /** What is in force; undefined when the table was refused, so that what was in force before still is. */
  readonly desired: NodeDesired | undefined;
  /** What the kernel could not be made to hold. */
  readonly problems: readonly NodeProblem[];
  /** False when it is worth trying again although nothing changes. */
  readonly isDone: boolean;
}

/** Puts a table in force, or one like it that the kernel takes; returns what it belongs to, undefined when none is. */
export type SettleTable = (desired: NodeDesired) => Promise<NodeDesired | undefined>;

/** What the kernel holds of ours when the agent starts, as far as applying goes. */
export interface Standing extends Connected {
  readonly hasTable: boolean;
  /** Addresses of pods that it knew; undefined without a table. */
  readonly sources: ReadonlySet<Ip> | undefined;
}

/** Applies one NodeDesired after the other; never call `apply` twice at once. */
export class Applier {
  readonly #kernel: Kernel;
  readonly #hooks: ApplierHooks;
  readonly #distrusted = new Set<Exclude<KernelPart, 'table'>>();
  /** What was applied last, whole and without a refusal. */
  #network: NetworkDesired | undefined;
  #sysctls: NodeDesired['sysctls'] | undefined;
  /** EIPs that the kernel answers for only while the gate is open; undefined until it was told. */
  #covered: ReadonlySet<Ip> | undefined;
  /** True: nobody tells when others change that, so that it is told anew when everything is looked at. */
  #isCoverDoubted = false;
  #hasTable: boolean;
  readonly #existing: ExistingConnections;
  readonly #stale: StaleConnections;
  /** What is in force, and the last table that the kernel took: `follow` may have been quicker than a pass. */
  #inForce: NodeDesired | undefined;
  #table: TableDesired | undefined;

  constructor(kernel: Kernel, hooks: ApplierHooks, { hasTable, sources, ...connected }: Standing, gate: GateNow) {
    this.#kernel = kernel;
    this.#hooks = hooks;
    this.#stale = new StaleConnections(kernel.conntrack, gate, connected);
    this.#hasTable = hasTable;
    this.#existing = new ExistingConnections(kernel.conntrack, sources);
  }

  /** Says that a part may differ from what was applied last: it is read and compared the next time. */
  distrust(part: KernelPart): void {
    if (part === 'table') this.#kernel.nftables.distrust();
    else this.#distrusted.add(part);
    if (part !== 'network') return;
    this.#kernel.network.distrust();
    this.#kernel.gate.doubt();
    this.#isCoverDoubted = true;
  }

  /** Applies all parts in order. Rejects with an EgressError when the kernel cannot be asked at all. */
  async apply(desired: NodeDesired, settle: SettleTable): Promise<ApplyResult> {
    const isSame = isDeepStrictEqual(desired.network, this.#network);
    const mustLook = this.#distrusted.delete('network') || !isSame;
    // Until everything has gone well, nobody knows what the network is like.
    this.#network = undefined;
    const gated = gatedIn(desired);
    await this.#cover(gated.union(this.#covered ?? new Set()));
    const first = this.#hasTable ? undefined : await settle(desired);
    if (first === undefined && !this.#hasTable) return { desired: undefined, problems: [], isDone: false };
    this.#hasTable = true;
    const problems = mustLook ? await this.#applyNetwork('grow', desired.network, isSame) : [];
    const isGrown = problems.length === 0;
    // After the devices: some settings are theirs.
    problems.push(...(await this.#applySysctls(desired.sysctls)));
    const inForce = first ?? (await settle(desired));
    if (inForce === undefined) return { desired: undefined, problems, isDone: false };
    const mustTrim = mustLook || inForce.network !== desired.network;
    const untrimmed = mustTrim ? await this.#applyNetwork('trim', inForce.network, isSame) : [];
    if (isGrown && untrimmed.length === 0) this.#network = inForce.network;
    await this.#cover(gated);
    // Behind a gate, whoever opens it announces.
    const { refused } = this.#kernel.announcer.apply(inForce.table.settings.isGated ? [] : inForce.claims);
    problems.push(...untrimmed, ...refused.map(({ finding }) => problemOf(finding)));
    this.#inForce = inForce;
    const isForgotten = await this.settleConnections();
    const isCut = await this.#cutConnections(inForce);
    return { desired: inForce, problems, isDone: isForgotten && isCut && problems.length === 0 };
  }

  /** Applies a table; returns why the kernel refused it, undefined when it is in force. */
  async applyTable(table: TableDesired): Promise<EgressError | undefined> {
    try {
      const { changed, drift, wasReplaced } = await this.#kernel.nftables.apply(table);
      this.#table = table;
      if (wasReplaced) this.#hooks.replaced();
      if (drift.some((name) => lettingOut.test(name))) this.#existing.doubt();
      // What others have changed is put back together with what is to be changed anyway.
      this.#note('table', changed, drift.length > 0);
      return undefined;
    } catch (error) {
      if (error instanceof EgressError && error.code === 'NFT_REFUSED') return error;
      throw error;
    }
  }

  /**
   * Sets which EIPs the kernel answers for only while the gate is open for them: before their addresses come, and until
   * they are gone. Without the tables of the gate there is nothing to cover and nothing covered.
   */
  async #cover(ips: ReadonlySet<Ip>): Promise<void> {
    const { gate } = this.#kernel;
    const known = this.#covered;
    if (known !== undefined && isSameSet(ips, known) && !this.#isCoverDoubted) return;
    const why = gate.cover([...ips]);
    if (why !== undefined && ips.size > 0) {
      await gate.prepare();
      const still = gate.cover([...ips]);
      if (still !== undefined) throw new EgressError('NFT_REFUSED', `cover EIPs with the gate: ${still}`);
    }
    this.#covered = ips;
    this.#isCoverDoubted = false;
  }

  async #applyNetwork(step: 'grow' | 'trim', network: NetworkDesired, isRepair: boolean): Promise<NodeProblem[]> {
    const { changed, refused } = await this.#kernel.network[step](network);
    this.#note('network', changed, isRepair);
    return refused.map(({ what, message, reason }) => problemOf(finding(reason, `${what}: ${message}.`)));
  }

  async #applySysctls(sysctls: NodeDesired['sysctls']): Promise<NodeProblem[]> {
    const isLooking = this.#distrusted.delete('sysctls');
    const isSame = isDeepStrictEqual(sysctls, this.#sysctls);
    if (isSame && !isLooking) return [];
    const { changed, refused } = await this.#kernel.sysctls.apply(sysctls);
    this.#note('sysctls', changed.length, isSame);
    this.#sysctls = refused.length === 0 ? sysctls : undefined;
    return refused.map(({ path, message }) => problemOf(finding('SysctlRefused', `${path} is not set: ${message}.`)));
  }

  /** Says which EIPs this node owns by now, whenever that changes. */
  owns(eips: ReadonlySet<Ip>): void {
    this.#stale.owns(eips);
  }

  /**
   * Sees to it that connections leave where their slots do: in each pass, and at once when EIPs have another owner or a gate has opened.
   * False when it is to be tried again.
   */
  async settleConnections(): Promise<boolean> {
    const [desired, table] = [this.#inForce, this.#table];
    if (desired === undefined || table === undefined) return true;
    try {
      // An EIP that was lost may come back in a moment, and its connections with it: they stay while it lies ready here.
      await this.#stale.settle({ table, eips: eipsIn(desired), gated: gatedIn(desired) });
      return true;
    } catch (error) {
      if (!(error instanceof EgressError)) throw error;
      this.#hooks.forgetFailed(error);
      return false;
    }
  }

  /** After the rules are in force, so that the next packet of each begins a connection under them. */
  async #cutConnections({ existing }: NodeDesired): Promise<boolean> {
    try {
      const count = await this.#existing.settle(existing);
      if (count > 0) this.#hooks.cut(count);
      return true;
    } catch (error) {
      if (!(error instanceof EgressError)) throw error;
      this.#hooks.forgetFailed(error);
      return false;
    }
  }

  #note(part: KernelPart, changes: number, isRepair: boolean): void {
    if (changes === 0) return;
    if (isRepair) this.#hooks.repaired(part, changes);
    else this.#hooks.changed(part, changes);
  }
}

/** What others may have changed in the table so that connections of pods began without their policies. */
const lettingOut = /^(table|chains|(pod|net|dst|dflt|cluster)[46])$/;

/** The EIPs that are in use on a node or lie ready there. */
const eipsIn = ({ claims, expected, standbys }: NodeDesired): ReadonlySet<Ip> =>
  new Set([...claims, ...expected, ...standbys].map(({ ip }) => ip));

/** Those that only the gate may open. */
const gatedIn = (desired: NodeDesired): ReadonlySet<Ip> =>
  desired.table.settings.isGated ? eipsIn(desired) : new Set();

const problemOf = (found: Finding): NodeProblem => ({ finding: found, policy: undefined });
