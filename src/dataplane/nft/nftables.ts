/**
 * Our table in the kernel, through the program nft. Read Nftables first. Reading the kernel takes long where it holds
 * much (0.2 s for 20,000 pods), so it is done at the start, after doubt, and never for an ordinary change.
 */
import type { TableDesired } from '../../core/node/desired.ts';
import type { ProgramResult, Programs } from '../program.ts';
import type { StateFile } from '../state-file.ts';
import type { Timers } from '../timers.ts';
import type { OpenChangeFeed } from './change-feed.ts';
import {
  type Count,
  type CountingContainer,
  countingContainers,
  joinCounts,
  readCounts,
  type TableCounters,
} from './counters.ts';
import { type ContainerChange, diffElements, differingIn } from './diff.ts';
import { type ForeignChange, watchTable } from './monitor.ts';
import { chainNamesIn, frameIn, readChains, readTable, type TableActual } from './read.ts';
import { readRecord, writeRecord } from './record.ts';
import { isStale, refusalOf } from './refusal.ts';
import {
  type LoadedTable,
  renderChanges,
  renderNewTable,
  renderRemoval,
  renderRenewal,
  renderReplacement,
  renderTable,
} from './render.ts';
import { chainsFor } from './ruleset.ts';
import { KernelSeal, renderSealRemoval } from './seal.ts';
import { Signatures } from './signatures.ts';
import {
  createStoring,
  noElements,
  SEAL,
  type StoredElements,
  type StoredName,
  sizeOf,
  storedContainers,
  TABLE,
} from './stored.ts';

/** The table of one node. Calls that change it or read it wait for each other. */
export interface Nftables {
  /** The first of `LENT_SIGNATURES` numbers with which other parts of the process sign their changes of the table. */
  readonly lentSignatures: number;
  /**
   * Makes the table hold what is desired, in one transaction of only what differs. Reads the kernel first if its content
   * is not known. Rejects with NFT_REFUSED (its data is RefusalData); then what the kernel had stays in force. Rejects
   * with another error if the state file fails; then the table may have been replaced, and the next call finds it so.
   */
  apply(desired: TableDesired): Promise<TableOutcome>;
  /** What the kernel holds; undefined when there is no table of ours. */
  read(): Promise<TableActual | undefined>;
  /** Somebody else may have changed the table: the next apply reads the kernel first. */
  distrust(): void;
  /** Deletes the table and what is kept about it. May be called twice. */
  remove(): Promise<void>;
  /** What was counted; nothing without a table. */
  counters(): Promise<TableCounters>;
  /**
   * Calls back after changes of the table by others, and when changes may have been missed; `who` is the program that
   * made them, or why they were missed. Hears everything from the moment of the call on. Resolves when the signal is
   * aborted; rejects if the kernel does not tell changes at all.
   */
  watch(onForeign: (who: string) => void, signal: AbortSignal): Promise<void>;
}

/** What apply did. */
export interface TableOutcome {
  /** How many elements came, went or got another value; all of them after a replacement. */
  readonly changed: number;
  /** True when all chains were loaded anew, because there were none or they were not ours. */
  readonly wasReplaced: boolean;
  /** What others had changed since the last apply. Known only if the kernel was read, and never at the first apply. */
  readonly drift: readonly Drift[];
}

/** What others changed: the whole table is gone, its chains are others, the elements of a container, or the seal. */
export type Drift = 'table' | 'chains' | 'seal' | StoredName;

export interface NftablesDeps {
  readonly programs: Programs;
  /** Keeps how the kernel lists the chains that we loaded, so that they are known after a restart. */
  readonly file: StateFile;
  readonly openChangeFeed: OpenChangeFeed;
  readonly clock: Timers;
  /** A number from 0 up to 1. */
  readonly random: () => number;
}

/** The table in the network namespace in which the programs run. */
export const createNftables = (deps: NftablesDeps): Nftables => new KernelTable(deps);

/** What the kernel holds, as far as we know. */
interface KernelTableState extends LoadedTable {
  readonly elements: StoredElements;
  /** False: others changed chains or rules since they were loaded from the text. */
  readonly areChainsOurs: boolean;
}

// A first load of 100,000 elements takes seconds on a busy machine.
const LIMIT_MS = 60_000;

class KernelTable implements Nftables {
  readonly #deps: NftablesDeps;
  readonly #signatures: Signatures;
  readonly #stored = createStoring();
  readonly #seal = new KernelSeal();
  /** Undefined: there is no table, or its containers are not ours. */
  #held: KernelTableState | undefined;
  /** True: what is held must be read first. */
  #isDoubted = true;
  /** True: the kernel had no table of our name when it was read last. */
  #isAbsent = false;
  /** True: others changed chains since the last replacement. The listing alone would not tell if it was in that moment. */
  #areChainsForeign = false;
  /** What apply made last, to tell drift. */
  #applied: StoredElements | undefined;
  /** The call before this one. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(deps: NftablesDeps) {
    this.#deps = deps;
    this.#signatures = new Signatures(deps.random);
  }

  get lentSignatures(): number {
    return this.#signatures.firstLent;
  }

  apply(desired: TableDesired): Promise<TableOutcome> {
    return this.#inTurn(() => this.#apply(desired));
  }

  read(): Promise<TableActual | undefined> {
    return this.#inTurn(() => this.#read());
  }

  distrust(): void {
    this.#isDoubted = true;
  }

  remove(): Promise<void> {
    return this.#inTurn(async () => {
      this.#isDoubted = true;
      this.#applied = undefined;
      const sealed = await this.#load(renderSealRemoval());
      if (sealed.ended.code !== 0) throw refusalOf('delete the nft table of the seal', sealed.ended, sealed.script);
      const { script, ended } = await this.#load(renderRemoval());
      if (ended.code !== 0 && !isStale(ended)) throw refusalOf('delete the nft table', ended, script);
      await this.#deps.file.remove();
    });
  }

  async counters(): Promise<TableCounters> {
    const counts: [CountingContainer, ReadonlyMap<string, Count>][] = [];
    // One program for each: nft 1.0.6 finds nothing when one script lists two sets.
    for (const name of countingContainers) {
      const kind = storedContainers.get(name)?.value === undefined ? 'set' : 'map';
      const json = await this.#list([kind, 'inet', TABLE, name]);
      counts.push([name, json === undefined ? new Map() : readCounts(json)]);
    }
    // The entries were made from all names.
    return joinCounts(Object.fromEntries(counts) as Record<CountingContainer, ReadonlyMap<string, Count>>);
  }

  watch(onForeign: (who: string) => void, signal: AbortSignal): Promise<void> {
    const { openChangeFeed, clock } = this.#deps;
    const isOwn = (signature: number): boolean => this.#signatures.isOwn(signature);
    const onChange = ({ who, concernsChains }: ForeignChange): void => {
      if (concernsChains) this.#areChainsForeign = true;
      onForeign(who);
    };
    return watchTable({ openChangeFeed, clock, isOwn, onForeign: onChange, signal });
  }

  async #apply(desired: TableDesired): Promise<TableOutcome> {
    const text = renderTable(desired.settings);
    const elements = this.#stored(desired.elements);
    const wanted: KernelTableState = {
      text,
      elements,
      chains: chainsFor(desired.settings).map(({ name }) => name),
      areChainsOurs: true,
    };
    let drift: readonly Drift[] = [];
    let isNew = false;
    for (let wasRead = false; ; ) {
      if (this.#isDoubted) {
        drift = await this.#learn();
        wasRead = true;
      }
      // A table of ours that somebody has deleted comes back whole, in one transaction.
      if (this.#isAbsent && this.#applied === undefined) {
        await this.#begin(wanted, desired.settings);
        isNew = true;
      }
      const held = this.#held;
      const wasReplaced = held?.text !== text || !held.areChainsOurs;
      const changes = held === undefined ? [] : diffElements(held.elements, elements);
      const sealing = this.#seal.scriptFor(desired);
      if (!wasReplaced && changes.length === 0 && sealing === '') {
        this.#applied = elements;
        return { changed: isNew ? sizeOf(elements) : 0, wasReplaced: isNew, drift };
      }
      if (wasReplaced) this.#areChainsForeign = false;
      const { script, ended } = wasReplaced
        ? await this.#replace(held, desired, changes, sealing)
        : await this.#load(renderChanges(changes, this.#signatures.next()) + sealing);
      if (ended.code === 0) {
        this.#held = wanted;
        this.#applied = elements;
        if (this.#seal.settle(desired) || wasReplaced) await this.#remember(desired.settings);
        const isAll = wasReplaced || isNew;
        return { changed: isAll ? sizeOf(elements) : differingIn(changes), wasReplaced: isAll, drift };
      }
      if (wasRead || !isStale(ended)) throw refusalOf('change the nft table', ended, script);
      // The kernel does not hold what we thought, and nobody has told us yet.
      this.#isDoubted = true;
    }
  }

  /**
   * Makes the first table of a node, without elements: nobody is worse off than before, and how the kernel lists its chains
   * is found out in a moment. With ten thousand pods in it that takes as long as to load them.
   */
  async #begin(wanted: KernelTableState, settings: TableDesired['settings']): Promise<void> {
    const { script, ended } = await this.#load(renderNewTable(settings, this.#signatures.next()));
    if (ended.code !== 0) throw refusalOf('make the nft table', ended, script);
    this.#isAbsent = false;
    this.#held = { ...wanted, elements: noElements };
    await this.#remember(settings);
  }

  /** Loads all chains anew: in the table that is there if that can be, else with a new one. */
  async #replace(
    held: KernelTableState | undefined,
    desired: TableDesired,
    changes: readonly ContainerChange[],
    sealing: string,
  ): Promise<{ readonly script: string; readonly ended: ProgramResult }> {
    const renewal = held && renderRenewal(held, desired.settings, changes, this.#signatures.next());
    const renewed = renewal === undefined ? undefined : await this.#load(renewal + sealing);
    // Others may have put something in the way that only goes with the table, such as a hook at another place.
    if (renewed?.ended.code === 0) return renewed;
    return this.#load(renderReplacement(desired, this.#signatures.next()) + sealing);
  }

  /** Reads what the kernel holds and returns what others changed. The chains are ours if it lists them as after our load. */
  async #learn(): Promise<readonly Drift[]> {
    // First, so that a doubt that comes up during the read is not forgotten.
    this.#isDoubted = false;
    try {
      const actual = await this.#read();
      this.#isAbsent = actual === undefined;
      const record = readRecord(await this.#deps.file.read());
      const areChainsOurs = record?.chains === actual?.chains && !this.#areChainsForeign;
      const isKept = actual !== undefined && record !== undefined && frameIn(record.chains) === frameIn(actual.chains);
      this.#held = isKept
        ? { text: record.text, elements: actual.elements, chains: chainNamesIn(actual.chains), areChainsOurs }
        : undefined;
      const listed = await this.#list(['table', 'inet', SEAL]);
      const isSealOther = this.#seal.learn(listed, record?.seal);
      if (this.#applied === undefined) return [];
      const seal: readonly Drift[] = isSealOther ? ['seal'] : [];
      if (actual === undefined) return ['table', ...seal];
      const changed = diffElements(actual.elements, this.#applied).map(({ name }) => name);
      return [...(areChainsOurs ? [] : (['chains'] as const)), ...changed, ...seal];
    } catch (error) {
      this.#isDoubted = true;
      throw error;
    }
  }

  /** Keeps how the kernel lists what was loaded for these settings. */
  async #remember(settings: TableDesired['settings']): Promise<void> {
    const json = await this.#list(['table', 'inet', TABLE], '-t');
    if (json === undefined) return;
    const seal = await this.#list(['table', 'inet', SEAL], '-t');
    const record = { text: renderTable(settings), chains: readChains(json) };
    const sealed = seal === undefined ? {} : { seal: { chains: readChains(seal), device: settings.device } };
    await this.#deps.file.write(writeRecord({ ...record, ...sealed }));
  }

  async #read(): Promise<TableActual | undefined> {
    const json = await this.#list(['table', 'inet', TABLE]);
    return json === undefined ? undefined : readTable(json);
  }

  /** What nft lists; undefined when it is not there. */
  async #list(what: readonly string[], ...flags: readonly string[]): Promise<string | undefined> {
    const ended = await this.#deps.programs.run(['nft', '-j', ...flags, 'list', ...what], { limitMs: LIMIT_MS });
    if (ended.code === 0) return ended.stdout;
    if (isStale(ended)) return undefined;
    throw refusalOf(`list the nft ${what.join(' ')}`, ended);
  }

  async #load(script: string): Promise<{ readonly script: string; readonly ended: ProgramResult }> {
    const ended = await this.#deps.programs.run(['nft', '-f', '-'], { input: script, limitMs: LIMIT_MS });
    // With 1, nft says that it refused and changed nothing. After any other bad end nobody knows.
    if (ended.code !== 0 && ended.code !== 1) this.#isDoubted = true;
    return { script, ended };
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work, work);
    this.#last = result;
    return result;
  }
}
