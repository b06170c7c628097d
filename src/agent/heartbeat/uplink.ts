/**
 * Uplink notices when the outside is out of reach of this node: the carrier of its interface is gone, or its next hop does
 * not answer. Whether others reach it is not its question: the protocol asks them before an EIP moves for it.
 */
import type { Ip } from '../../core/ip/index.ts';
import type { Announcer } from '../../dataplane/announce/announcer.ts';
import { hasCarrier, type Libc } from '../../dataplane/libc.ts';
import type { Clock } from '../../runtime/process/clock.ts';

/** The interface that leads outside, and the next hops there. */
export interface UplinkPlace {
  readonly interface: string;
  /** One of each family at the most. */
  readonly nextHops: readonly Ip[];
}

export interface UplinkDeps {
  readonly clock: Clock;
  readonly libc: Libc;
  readonly probe: Announcer['probe'];
  readonly onChange: (isUp: boolean, why: string) => void;
}

/** How often the carrier is looked at, and next hops are asked; a router that is well answers within a millisecond. */
const CARRIER_MS = 50;
const ASK_MS = 100;
const ANSWER_MS = 100;
/** Each question is asked twice; so two silent ones are four packets that were lost. */
const SILENT_ASKS = 2;

export class Uplink {
  readonly #deps: UplinkDeps;
  #place: UplinkPlace | undefined;
  #isUp = true;
  #hasCarrier = true;
  /** How many questions in a row were not answered; a router that never answered proves nothing by it. */
  #silent = new Map<Ip, number>();
  readonly #answered = new Set<Ip>();
  #isAsking = false;
  #askAtMs = 0;
  #cancel = (): void => {};

  constructor(deps: UplinkDeps) {
    this.#deps = deps;
  }

  /** Watches this place from now on; undefined: none, and the uplink counts as there. */
  watch(place: UplinkPlace | undefined): void {
    this.#cancel();
    this.#place = place;
    this.#silent = new Map();
    this.#hasCarrier = true;
    if (place === undefined) this.#judge();
    else this.#look();
  }

  #look(): void {
    const place = this.#place;
    if (place === undefined) return;
    const { clock, libc } = this.#deps;
    this.#hasCarrier = hasCarrier(libc, place.interface);
    const nowMs = clock.monotonicMs();
    if (nowMs >= this.#askAtMs && !this.#isAsking) {
      this.#askAtMs = nowMs + ASK_MS;
      void this.#ask(place);
    }
    this.#judge();
    this.#cancel = clock.after(CARRIER_MS, () => this.#look());
  }

  async #ask(place: UplinkPlace): Promise<void> {
    this.#isAsking = true;
    const interfaces = [place.interface];
    await Promise.all(
      place.nextHops.map(async (ip) => {
        const answer = await this.#deps.probe({ ip, interfaces }, ANSWER_MS);
        if (answer !== undefined) this.#answered.add(ip);
        this.#silent.set(ip, answer === undefined ? (this.#silent.get(ip) ?? 0) + 1 : 0);
      }),
    );
    this.#isAsking = false;
    if (place === this.#place) this.#judge();
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
