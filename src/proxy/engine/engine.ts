/**
 * ProxyEngine is a program that moves the bytes: Envoy or nginx. It gets a whole rule set and makes it so; rules that did
 * not change are not touched. Every engine passes the suite in testing/conformance.ts.
 */
import type { Reason } from '../../api/reasons.ts';
import type { RuleSet, ServedRule } from '../../core/proxy/served.ts';
import type { Clock } from '../../runtime/process/clock.ts';
import type { Log } from '../../runtime/process/log.ts';
import type { Sources } from './sources.ts';

/** What an engine is made of. */
export interface EngineParts {
  /** Path of the program, or its name in PATH. */
  readonly program: string;
  /** A folder of its own, which exists; what an earlier process left there may be removed. */
  readonly folder: string;
  /** Gets one JSON line per request or connection, see access-line.ts: as many as there are, each with its newline. */
  readonly accessLog: (lines: string | Buffer) => void;
  readonly log: Log;
  readonly clock: Clock;
}

export interface ProxyEngine {
  readonly name: 'envoy' | 'nginx';
  /** Why the engine can never do what a rule asks, with the engine that can; undefined when it can. */
  cannot(rule: ServedRule): RuleProblem | undefined;
  /** What users should know of a rule that is live, such as a way in which this engine does not serve it; for its status. */
  note?(rule: ServedRule): string | undefined;
  /** Starts the program and keeps it running until the signal is aborted; resolves when it has ended. */
  run(signal: AbortSignal): Promise<void>;
  /**
   * Makes the rules live, all that can be, and resolves when the engine was seen to serve them. What cannot be made live is
   * told rule by rule; connections of unchanged rules live on. Rejects with ENGINE_FAILED when the engine cannot be reached
   * at all; then the last rules stay in force, and it can be called again.
   */
  apply(rules: RuleSet): Promise<AppliedRules>;
  /** Tells whose addresses clients have from now on; it never waits for the engine. Until it is called nobody is known. */
  admit(sources: Sources): Promise<void>;
  /** What the engine counts now. */
  read(): Promise<EngineReading>;
  /**
   * From now on answers to plain requests end their connections, so that clients go to other replicas. All else goes on, new
   * connections too. Rejects with ENGINE_FAILED when the engine cannot be reached.
   */
  retire(): Promise<void>;
}

/** What became of a rule set: the rules that are not live, by id. */
export interface AppliedRules {
  readonly problems: ReadonlyMap<string, RuleProblem>;
}

export interface RuleProblem {
  readonly reason: Reason;
  readonly sentence: string;
}

/** Counts since the engine started, by rule id; a rule that nobody used may be missing. */
export interface EngineReading {
  readonly rules: ReadonlyMap<string, RuleReading>;
  /**
   * Rules of whose destination the engine has addresses; absent for an engine that looks a name up for each connection and
   * waits for the answer.
   */
  readonly resolved?: ReadonlySet<string>;
  /** Requests and connections that were not let through. */
  readonly refused: ReadonlyMap<RefusalWord, number>;
}

/**
 * Why something was not let through: no rule allows it; it is not what a client may send; the client took too long to send
 * it; a rule allows it, but its name leads nowhere that may be reached, or nobody answers there; it has come back to proxies too
 * often; its rule, which is open to anyone, has as many connections as it may.
 */
export const refusalWords = ['not-allowed', 'malformed', 'slow', 'unreachable', 'loop', 'too-many'] as const;
export type RefusalWord = (typeof refusalWords)[number];

export interface RuleReading {
  /** Open connections. */
  readonly actives: number;
  readonly connections: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
}
