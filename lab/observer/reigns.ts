import type { Use } from './frames.ts';

/** Uninterrupted sightings of one address with one MAC address. */
export interface Spell {
  readonly mac: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly frames: number;
}

/** An address went from one MAC address to another. */
export interface HandOver {
  readonly from: string;
  readonly to: string;
  /** When the first frame of another one than before was seen. */
  readonly atMs: number;
  /** From then until the last change: as long frames of both were seen. Zero for a clean one. */
  readonly mixedMs: number;
}

/** Changes that follow each other more closely than this are one hand-over, where nobody says otherwise. */
const usualOnceMs = 1_000;

/** Who used one address, in the order of time. */
export class Reigns {
  readonly #spells: { mac: string; fromMs: number; toMs: number; frames: number }[] = [];

  /** Sightings have to come in the order of time. */
  add({ mac }: Use, atMs: number): void {
    const last = this.#spells.at(-1);
    if (last?.mac !== mac) {
      this.#spells.push({ mac, fromMs: atMs, toMs: atMs, frames: 1 });
      return;
    }
    last.toMs = atMs;
    last.frames += 1;
  }

  get spells(): readonly Spell[] {
    return this.#spells;
  }
}

/** The hand-overs in a sequence of spells, those of later than `sinceMs`. One that ends where it began is told too: it flapped. */
export function handOversIn(spells: readonly Spell[], sinceMs = 0, onceMs = usualOnceMs): HandOver[] {
  const found: { from: string; to: string; atMs: number; mixedMs: number }[] = [];
  for (const [index, { mac, fromMs }] of spells.entries()) {
    const before = spells[index - 1];
    if (before === undefined || fromMs < sinceMs) continue;
    const last = found.at(-1);
    const previousAtMs = last === undefined ? Number.NEGATIVE_INFINITY : last.atMs + last.mixedMs;
    if (last !== undefined && fromMs - previousAtMs < onceMs) {
      last.to = mac;
      last.mixedMs = fromMs - last.atMs;
    } else found.push({ from: before.mac, to: mac, atMs: fromMs, mixedMs: 0 });
  }
  return found;
}

/** The MAC addresses seen between two times, each once, in the order of their last frame. */
export function macsBetween(spells: readonly Spell[], fromMs: number, toMs = Number.POSITIVE_INFINITY): string[] {
  const seen = spells.filter((spell) => spell.toMs >= fromMs && spell.fromMs <= toMs).map(({ mac }) => mac);
  return [...new Set(seen.reverse())].reverse();
}
