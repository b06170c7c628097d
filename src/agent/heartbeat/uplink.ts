/**
 * Uplink notices for which EIPs the outside is out of reach of this node: the carrier of an interface that they need is gone, or its
 * router does not answer in their family. Whether others reach it is not its question: the protocol asks them before an EIP moves for it.
 */
import { isDeepStrictEqual } from 'node:util';
import { familyOfCidr, type Ip, type IpFamily } from '../../core/ip/index.ts';
import type { UplinkLine, UplinkLoss, UplinkPlace, UplinkWay } from '../../core/node/uplink.ts';
import type { Unreached } from '../../core/ownership/reach.ts';
import type { Neighbours } from '../../dataplane/announce/neighbours.ts';
import type { Clock } from '../../runtime/process/clock.ts';

export interface UplinkDeps {
  readonly clock: Clock;
  readonly hasCarrier: (interfaceName: string) => boolean;
  /** One for each interface. */
  readonly createNeighbours: () => Neighbours;
  /** The networks whose EIPs do not reach the outside, and why, whenever they are others. */
  readonly onChange: (unreached: readonly Unreached[], losses: readonly UplinkLoss[]) => void;
}

/** How often the carrier is looked at and next hops are asked; a router that is well answers within a millisecond. */
const ASK_MS = 50;
/** So many questions in a row without an answer are a loss: one lost packet, or two, are not. */
const SILENT_ASKS = 3;
/** What was lost counts as back when it was well for so long: a router that comes and goes would else move EIPs each time. */
const BACK_MS = 1_000;

export class Uplink {
  readonly #deps: UplinkDeps;
  #ways: readonly UplinkWay[] = [];
  readonly #lines = new Map<string, Line>();
  #unreached: readonly Unreached[] = [];
  #losses: readonly UplinkLoss[] = [];
  #cancel = (): void => {};

  constructor(deps: UplinkDeps) {
    this.#deps = deps;
  }

  /** Watches this place from now on; undefined: none, and everything counts as in reach. What is known of an interface that stays is kept. */
  watch(place: UplinkPlace | undefined): void {
    this.#cancel();
    this.#ways = place?.ways ?? [];
    const wanted = new Map(place?.lines.map((line) => [line.interface, line]));
    for (const [name, line] of this.#lines) {
      if (wanted.has(name)) continue;
      line.close();
      this.#lines.delete(name);
    }
    for (const [name, line] of wanted) {
      const known = this.#lines.get(name) ?? new Line(name, this.#deps);
      known.set(line);
      this.#lines.set(name, known);
    }
    if (this.#lines.size > 0) this.#look();
    else this.#judge();
  }

  /**
   * Reads what has come since the last look and asks again. A thread that was held up misses nothing: answers wait for
   * it, and a question counts as unanswered only when somebody has looked for the answer.
   */
  #look(): void {
    for (const line of this.#lines.values()) line.look();
    this.#judge();
    this.#cancel = this.#deps.clock.after(ASK_MS, () => this.#look());
  }

  #judge(): void {
    const unreached = distinct(this.#ways.flatMap((way) => this.#unreachedBy(way)));
    const lineLosses = [...this.#lines.values()].flatMap((line) => line.losses);
    const losses = [...lineLosses, ...this.#goneWays(lineLosses)];
    if (isDeepStrictEqual(unreached, this.#unreached) && isDeepStrictEqual(losses, this.#losses)) return;
    this.#unreached = unreached;
    this.#losses = losses;
    this.#deps.onChange(unreached, losses);
  }

  /** What is lost without a line that is. */
  #goneWays(known: readonly UplinkLoss[]): readonly UplinkLoss[] {
    const found: UplinkLoss[] = [];
    for (const { network, announcedOn, leavesBy, isGone } of this.#ways) {
      const [family, name] = [familyOfCidr(network), announcedOn[0] ?? leavesBy];
      const isTold = [...known, ...found].some((one) => one.interface === name && one.family === family);
      if (isGone && name !== undefined && !isTold) {
        found.push({ interface: name, family, cause: 'route', nextHop: undefined });
      }
    }
    return found;
  }

  #unreachedBy({ network, announcedOn, leavesBy, isGone }: UplinkWay): Unreached[] {
    if (isGone) return [{ network, isLost: true }];
    const stateOn = (name: string): UplinkState => this.#lines.get(name)?.stateOf(familyOfCidr(network)) ?? 'well';
    const heardOn = announcedOn.map(stateOn);
    const isHeardBy = (...states: readonly UplinkState[]): boolean =>
      heardOn.length === 0 || heardOn.some((state) => states.includes(state));
    const leaving = leavesBy === undefined ? 'well' : stateOn(leavesBy);
    if (leaving === 'lost' || !isHeardBy('well', 'unknown')) return [{ network, isLost: true }];
    return leaving === 'unknown' || !isHeardBy('well') ? [{ network, isLost: false }] : [];
  }
}

/** Without networks of families that are there as a whole with the same word. */
const distinct = (unreached: readonly Unreached[]): readonly Unreached[] =>
  unreached.filter(
    ({ network, isLost }) =>
      network.endsWith('/0') ||
      !unreached.some(
        (other) =>
          other.network.endsWith('/0') &&
          familyOfCidr(other.network) === familyOfCidr(network) &&
          (other.isLost || !isLost),
      ),
  );

/** `unknown`: its router has not answered yet, which proves nothing. */
type UplinkState = 'well' | 'unknown' | 'lost';

interface Watched {
  readonly nextHop: Ip | undefined;
  hasAnswered: boolean;
  /** How many questions in a row were not answered. */
  silent: number;
  isLost: boolean;
  /** Since when it is well again; undefined when it is not, or was never lost. */
  wellSinceMs: number | undefined;
}

/** One interface. */
class Line {
  readonly #name: string;
  readonly #deps: UplinkDeps;
  readonly #neighbours: Neighbours;
  readonly #watchedByFamily = new Map<IpFamily, Watched>();
  #hasCarrier = true;
  /** Whom the last look has asked. */
  #asked: ReadonlySet<Ip> = new Set();

  constructor(name: string, deps: UplinkDeps) {
    this.#name = name;
    this.#deps = deps;
    this.#neighbours = deps.createNeighbours();
  }

  set({ families }: UplinkLine): void {
    const wanted = new Map(families.map(({ family, nextHop }) => [family, nextHop]));
    for (const family of this.#watchedByFamily.keys()) {
      if (!wanted.has(family)) this.#watchedByFamily.delete(family);
    }
    for (const [family, nextHop] of wanted) {
      const known = this.#watchedByFamily.get(family);
      if (known !== undefined && known.nextHop === nextHop) continue;
      // Of another router nothing is known; that the family was lost still is.
      const { isLost, wellSinceMs } = known ?? { isLost: false, wellSinceMs: undefined };
      this.#watchedByFamily.set(family, { nextHop, hasAnswered: false, silent: 0, isLost, wellSinceMs });
    }
  }

  look(): void {
    const heard = this.#neighbours.heard();
    this.#hasCarrier = this.#deps.hasCarrier(this.#name);
    for (const watched of this.#watchedByFamily.values()) {
      this.#hear(watched, heard);
      this.#judge(watched);
    }
    const hops = [...this.#watchedByFamily.values()].flatMap(({ nextHop }) => nextHop ?? []);
    this.#asked = this.#hasCarrier ? this.#neighbours.ask(this.#name, hops) : new Set();
  }

  stateOf(family: IpFamily): UplinkState {
    const watched = this.#watchedByFamily.get(family);
    if (watched === undefined) return 'well';
    if (watched.isLost) return 'lost';
    return watched.nextHop === undefined || watched.hasAnswered ? 'well' : 'unknown';
  }

  get losses(): readonly UplinkLoss[] {
    return [...this.#watchedByFamily]
      .filter(([, { isLost }]) => isLost)
      .map(([family, { nextHop }]) => {
        const isSilent = this.#hasCarrier && nextHop !== undefined;
        const why = isSilent
          ? ({ cause: 'silent', nextHop } as const)
          : ({ cause: 'carrier', nextHop: undefined } as const);
        return { interface: this.#name, family, ...why };
      });
  }

  close(): void {
    this.#neighbours.close();
  }

  #hear(watched: Watched, heard: ReadonlySet<Ip>): void {
    const { nextHop } = watched;
    if (nextHop === undefined) return;
    if (heard.has(nextHop)) {
      watched.hasAnswered = true;
      watched.silent = 0;
    } else if (this.#asked.has(nextHop)) watched.silent += 1;
    // A cable that is back is no router that is back.
    if (!this.#hasCarrier) watched.silent = Math.max(watched.silent, SILENT_ASKS);
  }

  #judge(watched: Watched): void {
    const nowMs = this.#deps.clock.monotonicMs();
    const isSilent = watched.hasAnswered && watched.silent >= SILENT_ASKS;
    if (!this.#hasCarrier || isSilent) {
      watched.isLost = true;
      watched.wellSinceMs = undefined;
    } else if (watched.isLost) {
      watched.wellSinceMs ??= nowMs;
      if (nowMs - watched.wellSinceMs >= BACK_MS) watched.isLost = false;
    }
  }
}
