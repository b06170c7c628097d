import { instanceOf } from '../host/instance.ts';
import type { Lab } from '../lab.ts';
import { callInside } from '../net/enter.ts';
import { outside } from '../net/fabric.ts';
import { namespacePath } from '../net/namespaces.ts';
import { type Capture, openCapture } from './capture.ts';
import { useOf } from './frames.ts';
import { type HandOver, handOversIn, macsBetween, Reigns, type Spell } from './reigns.ts';

/** What is looked at: everything, or claims alone. An EIP that was handed over may still be sent with for a moment. */
export type Scope = 'all' | 'claims';

const everyMs = 20;

/** Listens at the router of a lab, from its making until `stop`. Times are milliseconds since 1970. */
export class Observer {
  readonly #capture: Capture;
  readonly #timer: NodeJS.Timeout;
  readonly #byScope: Readonly<Record<Scope, Map<string, Reigns>>> = { all: new Map(), claims: new Map() };
  #lost = 0;

  constructor(lab: Lab) {
    this.#capture = callInside(namespacePath(instanceOf(lab.name), outside.name), () => openCapture('eth0'));
    this.#timer = setInterval(() => this.#drain(), everyMs);
  }

  /** Every address that was used, sorted. */
  get addresses(): string[] {
    this.#drain();
    return [...this.#byScope.all.keys()].toSorted();
  }

  /** Who used an address, in the order of time. */
  spells(ip: string, scope: Scope = 'all'): readonly Spell[] {
    this.#drain();
    return this.#byScope[scope].get(ip)?.spells ?? [];
  }

  /** When an address changed hands since a time; changes that are closer to each other than `onceMs` are one. */
  handOvers(ip: string, sinceMs: number, scope: Scope = 'all', onceMs?: number): HandOver[] {
    return handOversIn(this.spells(ip, scope), sinceMs, onceMs);
  }

  /** The MAC addresses that used an address between two times. */
  macs(ip: string, fromMs: number, toMs?: number, scope: Scope = 'all'): string[] {
    return macsBetween(this.spells(ip, scope), fromMs, toMs);
  }

  /** How many frames were missed: with any, what was seen proves nothing. */
  get lostFrames(): number {
    this.#drain();
    return this.#lost;
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#capture.close();
  }

  #drain(): void {
    this.#capture.drain((frame, atMs) => {
      const use = useOf(frame);
      if (use === undefined) return;
      this.#note('all', use.ip).add(use, atMs);
      if (use.kind === 'claim') this.#note('claims', use.ip).add(use, atMs);
    });
    this.#lost += this.#capture.lost();
  }

  #note(scope: Scope, ip: string): Reigns {
    const known = this.#byScope[scope].get(ip);
    if (known !== undefined) return known;
    const fresh = new Reigns();
    this.#byScope[scope].set(ip, fresh);
    return fresh;
  }
}
