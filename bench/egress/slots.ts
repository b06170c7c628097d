/**
 * How many slots the kernel of a node has, told by the kernel as they come: to list them again and again would take a good part of
 * the machine that is measured.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { instanceOf } from '../../lab/host/instance.ts';
import { until } from '../../lab/host/wait.ts';
import type { Lab } from '../../lab/lab.ts';
import { inNamespace } from '../../lab/net/fabric.ts';

/** The slots of all nodes of a lab. */
export class Slots {
  readonly #lab: Lab;
  readonly #nodes: readonly string[];
  readonly #known = new Map<string, Set<string>>();
  readonly #monitors: ChildProcess[] = [];
  #changedAtMs = 0;

  constructor(lab: Lab) {
    this.#lab = lab;
    this.#nodes = lab.status.nodes.map(({ name }) => name);
  }

  /** Begins to listen, and knows what is there already. */
  async open(): Promise<void> {
    for (const node of this.#nodes) this.#monitors.push(this.#follow(node));
    await Promise.all(this.#nodes.map((node) => this.#list(node)));
  }

  /** Returns when every kernel has as many slots, with the moment at which the last one came. */
  async reach(count: number, limitMs: number): Promise<number> {
    const explain = () => this.#nodes.map((node) => this.#slotsOf(node).size).join(' ');
    const wait = { what: `${count} policies in every kernel`, limitMs, everyMs: 50, explain };
    let listAtMs = performance.now() + lookEveryMs;
    return until(wait, async () => {
      // The kernel drops what a monitor is too slow to take.
      if (performance.now() > listAtMs) {
        await Promise.all(this.#nodes.map((node) => this.#list(node)));
        listAtMs = performance.now() + lookEveryMs;
      }
      return this.#nodes.every((node) => this.#slotsOf(node).size >= count) ? this.#changedAtMs : undefined;
    });
  }

  async close(): Promise<void> {
    for (const monitor of this.#monitors.splice(0)) {
      monitor.kill('SIGKILL');
      if (monitor.exitCode === null && monitor.signalCode === null) await once(monitor, 'exit');
    }
  }

  #follow(node: string): ChildProcess {
    const argv = inNamespace(instanceOf(this.#lab.name), node, ['nft', 'monitor', 'new', 'elements']);
    const [program = '', ...args] = argv;
    const monitor = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    createInterface({ input: monitor.stdout }).on('line', (line) => {
      if (!line.startsWith('add element inet sallyport slot_fwd ')) return;
      this.#take(
        node,
        [...line.matchAll(/[{,] (0x[0-9a-f]+) /g)].map(([, slot = '']) => slot),
      );
    });
    return monitor;
  }

  async #list(node: string): Promise<void> {
    const text = await this.#lab.exec(node, ['nft', '-j', 'list', 'map', 'inet', 'sallyport', 'slot_fwd']);
    const { nftables } = listingSchema.parse(JSON.parse(text));
    this.#take(
      node,
      nftables.flatMap(({ map }) => map?.elem ?? []).map(([{ elem }]) => `0x${elem.val.toString(16).padStart(8, '0')}`),
    );
  }

  #take(node: string, slots: readonly string[]): void {
    const known = this.#slotsOf(node);
    const before = known.size;
    for (const slot of slots) known.add(slot);
    this.#known.set(node, known);
    if (known.size > before) this.#changedAtMs = performance.now();
  }

  #slotsOf(node: string): Set<string> {
    return this.#known.get(node) ?? new Set();
  }
}

const lookEveryMs = 5_000;

const slotSchema = z.tuple([z.object({ elem: z.object({ val: z.number() }) }), z.unknown()]);
const listingSchema = z.object({
  nftables: z.array(z.object({ map: z.object({ elem: z.array(slotSchema).default([]) }).optional() })),
});
