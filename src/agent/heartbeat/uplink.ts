/**
 * Uplink notices when the outside is out of reach of this node: the carrier of its interface is gone, or its next hop does
 * not answer. Whether others reach it is not its question: the protocol asks them before an EIP moves for it.
 */
import type { Ip } from '../../core/ip/index.ts';
import type { Neighbours } from '../../dataplane/announce/neighbours.ts';
import type { Clock } from '../../runtime/process/clock.ts';

/** The interface that leads outside, and the next hops there. */
export interface UplinkPlace {
  readonly interface: string;
  /** One of each family at the most. */
  readonly nextHops: readonly Ip[];
}

export interface UplinkDeps {
  readonly clock: Clock;
  readonly hasCarrier: (interfaceName: string) => boolean;
  readonly neighbours: Neighbours;
  readonly onChange: (isUp: boolean, why: string) => void;
}

/** How often the carrier is looked at and next hops are asked; a router that is well answers within a millisecond. */
const ASK_MS = 50;
/** So many questions in a row without an answer are a loss: one lost packet, or two, are not. */
const SILENT_ASKS = 3;

export class Uplink {
  readonly #deps: UplinkDeps;
  #place: UplinkPlace | undefined;
  #isUp = true;
  #hasCarrier = true;
  /** Whom the last look has asked. */
  #asked: ReadonlySet<Ip> = new Set();
  /** How many questions in a row were not answered; a router that never answered proves nothing by it. */
  #silent = new Map<Ip, number>();
  readonly #answered = new Set<Ip>();
  #cancel = (): void => {};

  constructor(deps: UplinkDeps) {
    this.#deps = deps;
  }

  /** Watches this place from now on; undefined: none, and the uplink counts as there. */
  watch(place: UplinkPlace | undefined): void {
    this.#cancel();
    this.#place = place;
    this.#silent = new Map();
    this.#asked = new Set();
    this.#hasCarrier = true;
    if (place === undefined) {
      this.#deps.neighbours.close();
      this.#judge();
    } else this.#look();
  }

  /**
   * Reads what has come since the last look and asks again. A thread that was held up misses nothing: answers wait for
   * it, and a question counts as unanswered only when somebody has looked for the answer.
   */
  #look(): void {
    const place = this.#place;
    if (place === undefined) return;
    const { clock, hasCarrier, neighbours } = this.#deps;
    this.#hear(neighbours.heard());
    this.#hasCarrier = hasCarrier(place.interface);
    this.#asked = this.#hasCarrier ? neighbours.ask(place.interface, place.nextHops) : new Set();
    this.#judge();
    this.#cancel = clock.after(ASK_MS, () => this.#look());
  }

  #hear(heard: ReadonlySet<Ip>): void {
    for (const ip of this.#place?.nextHops ?? []) {
      if (heard.has(ip)) {
        this.#answered.add(ip);
        this.#silent.set(ip, 0);
      } else if (this.#asked.has(ip)) this.#silent.set(ip, (this.#silent.get(ip) ?? 0) + 1);
    }
  }

  #judge(): void {
    const known = (this.#place?.nextHops ?? []).filter((ip) => this.#answered.has(ip));
    const isSilent = known.length > 0 && known.every((ip) => (this.#silent.get(ip) ?? 0) >= SILENT_ASKS);
    const isUp = this.#hasCarrier && !isSilent;
    if (isUp === this.#isUp) return;
    this.#isUp = isUp;
    const why = this.#hasCarrier ? `the next hop ${known.join(' and ')} is silent` : 'the interface has no carrier';
    this.#deps.onChange(isUp, isUp ? '' : why);
  }
}
