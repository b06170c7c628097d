/**
 * Judge watches a network: who answers for an EIP at every moment, by what the kernels hold. Two nodes that answer for
 * one EIP are a fault at once if both agents run; if one does not, its kernel has to let go within its lease.
 */
import type { Ip } from '../../ip/index.ts';
import type { Timing } from '../timing.ts';
import type { Network, Node } from './network.ts';

/** A node began to answer for an EIP. */
export interface Change {
  readonly atMs: number;
  readonly node: string;
  readonly epoch: number;
}

export class Judge {
  readonly faults: string[] = [];
  readonly #timing: Timing;
  readonly #eips: readonly Ip[];
  readonly #changesByEip: Map<Ip, Change[]>;
  readonly #overlapSinceMs = new Map<Ip, number>();
  #network: Network | undefined;

  constructor(timing: Timing, eips: readonly Ip[]) {
    this.#timing = timing;
    this.#eips = eips;
    this.#changesByEip = new Map(eips.map((eip) => [eip, []]));
  }

  watch(network: Network): void {
    this.#network = network;
  }

  changesOf(eip: Ip): readonly Change[] {
    return this.#changesByEip.get(eip) ?? [];
  }

  /** The nodes that answer for an EIP now. */
  ownersOf(eip: Ip): readonly Node[] {
    const network = this.#network;
    return network?.nodes.filter((node) => network.ownedEpoch(node, eip) !== undefined) ?? [];
  }

  /** The kernel of a node has changed. */
  held(node: Node): void {
    const network = this.#network;
    if (network === undefined) return;
    for (const eip of this.#eips) {
      const epoch = network.ownedEpoch(node, eip);
      if (epoch === undefined) continue;
      const changes = this.#changesByEip.get(eip) ?? [];
      const last = changes.at(-1);
      if (last?.node !== node.name || last.epoch !== epoch) {
        changes.push({ atMs: network.timeMs, node: node.name, epoch });
      }
      if (this.ownersOf(eip).length > 1 && !this.#overlapSinceMs.has(eip)) {
        this.#overlapSinceMs.set(eip, network.timeMs);
      }
    }
    this.check();
  }

  /** Looks at what overlaps; cheap when nothing does. */
  check(): void {
    if (this.#overlapSinceMs.size === 0) return;
    for (const [eip, sinceMs] of [...this.#overlapSinceMs]) this.#checkOverlap(eip, sinceMs);
  }

  #checkOverlap(eip: Ip, sinceMs: number): void {
    const network = this.#network;
    if (network === undefined) return;
    const owners = this.ownersOf(eip);
    const lastedMs = network.timeMs - sinceMs;
    if (owners.length < 2) {
      this.#overlapSinceMs.delete(eip);
      return;
    }
    const isExcused = (node: Node): boolean => !network.isActing(node) || network.timeMs < node.excusedUntilMs;
    const sound = owners.filter((node) => !isExcused(node));
    const names = owners.map(({ name }) => name).join(' and ');
    const when = `${eip} at ${network.timeMs.toFixed(1)} ms`;
    if (sound.length > 1) this.#fail(eip, `two owners of ${when}: ${names}`);
    const limitMs = this.#timing.leaseMs + 4 * this.#timing.silenceMs;
    if (lastedMs > limitMs) this.#fail(eip, `two owners of ${when}: ${names}, for ${lastedMs.toFixed(0)} ms`);
  }

  #fail(eip: Ip, sentence: string): void {
    this.faults.push(sentence);
    // Once is enough.
    this.#overlapSinceMs.delete(eip);
  }
}
