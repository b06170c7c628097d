/**
 * Faults are what the in-memory API server does wrong on purpose. A test adds them in advance for requests to come;
 * each is used up by the first requests it matches. Open watches are broken with `TestApiServer.breakWatches`.
 */

/** What happens to an open watch. */
export type StreamFault =
  | 'end' // the server ends the stream properly
  | 'drop' // the connection is reset
  | 'cut' // the connection is reset in the middle of a line
  | 'stall' // nothing is sent any more, the connection stays (half-open, or a stopped server)
  | 'garbage' // a line that is not JSON
  | 'gone'; // an ERROR event with 410

/** What happens to one request. */
export type Fault =
  /** The connection is reset before the server has acted. */
  | { readonly kind: 'drop' }
  /** The server acts, then the connection is reset: the answer is lost. */
  | { readonly kind: 'lose-answer' }
  /** The server never answers. */
  | { readonly kind: 'hang' }
  /** The server answers this and does nothing: 410, 429, 500 ... */
  | { readonly kind: 'answer'; readonly status: number; readonly reason?: string; readonly retryAfterSeconds?: number }
  /** The answer is not JSON. */
  | { readonly kind: 'garbage' }
  /** The objects of a LIST come in reverse order: clients may not rely on order. */
  | { readonly kind: 'reorder' }
  /** Each event of the watch comes twice. */
  | { readonly kind: 'duplicate' }
  /** The watch breaks after so many events. */
  | { readonly kind: 'stream'; readonly afterEvents: number; readonly how: StreamFault };

/** What a request must be like for a fault to hit it; absent parts match everything. */
export interface FaultTarget {
  readonly verb?: string;
  readonly plural?: string;
  /** True: only LIST requests with a continue token. */
  readonly isContinued?: boolean;
}

interface PlannedFault {
  readonly target: FaultTarget;
  readonly fault: Fault;
  readonly times: number;
}

export class FaultPlan {
  #planned: readonly PlannedFault[] = [];

  /** The next `times` requests that match get the fault. Earlier entries come first. */
  add(target: FaultTarget, fault: Fault, times = 1): void {
    this.#planned = [...this.#planned, { target, fault, times }];
  }

  /** Forgets everything that was planned. */
  clear(): void {
    this.#planned = [];
  }

  /** Returns the fault for a request and uses it up, or undefined. */
  take(request: Required<FaultTarget>): Fault | undefined {
    const position = this.#planned.findIndex(({ target }) => isHit(target, request));
    const hit = this.#planned[position];
    if (hit === undefined) return undefined;
    this.#planned =
      hit.times > 1
        ? this.#planned.with(position, { ...hit, times: hit.times - 1 })
        : this.#planned.toSpliced(position, 1);
    return hit.fault;
  }
}

function isHit(target: FaultTarget, request: Required<FaultTarget>): boolean {
  return (
    (target.verb === undefined || target.verb === request.verb) &&
    (target.plural === undefined || target.plural === request.plural) &&
    (target.isContinued === undefined || target.isContinued === request.isContinued)
  );
}
