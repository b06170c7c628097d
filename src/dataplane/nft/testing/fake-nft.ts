/**
 * A kernel with nftables and the program nft in front of it, in memory. It understands the scripts that render.ts makes
 * and a few that others would send, holds what they say, lists it as nft does, and refuses what nft refuses.
 */
import type { ProgramResult, Programs } from '../../program.ts';
import type { ChangeFeed } from '../change-feed.ts';
import type { Count } from '../counters.ts';
import { TABLE } from '../stored.ts';
import { type FakeTable, listContainer, listTable } from './fake-listing.ts';
import { NOT_THERE, runScript } from './fake-script.ts';
import { packetsOf } from './packets.ts';

export class FakeNft implements Programs {
  /** Tables by name, ours and those of others. */
  #tables: ReadonlyMap<string, FakeTable> = new Map();
  readonly #feeds = new Set<Buffer[]>();
  /** How many transactions changed something, of whomever. */
  transactions = 0;
  /** How often all of the main table was listed. */
  listings = 0;
  /** Set to make every call fail in this way. */
  failure: ProgramResult | undefined;

  run: Programs['run'] = async (argv, { input = '' } = {}) => {
    if (this.failure !== undefined) return this.failure;
    const [program, ...args] = argv;
    if (program !== 'nft') return { code: 127, stdout: '', stderr: `spawn ${program} ENOENT` };
    if (args.join(' ') === '-f -') return this.#load(input, { program: 'nft', pid: 1 });
    const listed = /^-j (-t )?list (table|set|map) inet (\S+)(?: (\S+))?$/.exec(args.join(' '));
    if (listed === null) return { code: 1, stdout: '', stderr: `Error: syntax error: ${args.join(' ')}` };
    const [, terse, kind, tableName = '', containerName = ''] = listed;
    const table = this.#tables.get(tableName);
    const container = table?.containers.get(containerName);
    if (table === undefined || (kind !== 'table' && container === undefined)) {
      return { code: 1, stdout: '', stderr: `Error: ${NOT_THERE}` };
    }
    if (container !== undefined) return { code: 0, stdout: listContainer(containerName, container), stderr: '' };
    if (tableName === TABLE) this.listings += 1;
    return { code: 0, stdout: listTable(tableName, table, terse !== undefined), stderr: '' };
  };

  follow: Programs['follow'] = async () => ({ code: 127, stdout: '', stderr: 'the fake follows nothing' });

  openChangeFeed = (): ChangeFeed => {
    const waiting: Buffer[] = [];
    this.#feeds.add(waiting);
    return { receive: () => waiting.splice(0), close: () => this.#feeds.delete(waiting) };
  };

  /** Runs a script as another program would. Throws when it is refused. */
  meddle(script: string, program = 'intruder'): void {
    const { code, stderr } = this.#load(script, { program, pid: 4711 });
    if (code !== 0) throw new Error(stderr);
  }

  /** Lets an element count packets. */
  count(container: string, key: string, count: Count): void {
    for (const { containers } of this.#tables.values()) containers.get(container)?.counts.set(key, count);
  }

  #load(script: string, writer: { readonly program: string; readonly pid: number }): ProgramResult {
    const done = runScript(this.#tables, script);
    if (typeof done === 'string') return { code: 1, stdout: '', stderr: done };
    this.#tables = done.tables;
    if (done.touched.size > 0) this.transactions += 1;
    for (const [table, { concernsChains }] of done.touched) {
      const packets = packetsOf({ table, concernsChains, signatures: done.signatures, ...writer });
      for (const feed of this.#feeds) feed.push(...packets);
    }
    return { code: 0, stdout: '', stderr: '' };
  }
}
