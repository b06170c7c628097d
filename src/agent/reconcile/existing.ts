/**
 * ExistingConnections sees to it that no connection outlives what its pod is under: those that `src/core/node/existing.ts` says
 * are cut once the rules are in force. The connection table is listed only when a pod is new or a policy that cuts is.
 */
import type { Ip } from '../../core/ip/index.ts';
import { type Before, cutsAfter, type ExistingRules } from '../../core/node/existing.ts';
import type { Conntrack } from '../../dataplane/conntrack/conntrack.ts';

/** The connections of one node. */
export class ExistingConnections {
  readonly #conntrack: Pick<Conntrack, 'cut'>;
  #before: Before;

  /** `known` are the sources that the kernel knew when the agent started; undefined when it had no table of ours. */
  constructor(conntrack: Pick<Conntrack, 'cut'>, known: ReadonlySet<Ip> | undefined) {
    this.#conntrack = conntrack;
    this.#before = { rules: undefined, known };
  }

  /** Says that the rules have had a hole: what began meanwhile is looked for as after a boot. */
  doubt(): void {
    this.#before = { rules: undefined, known: undefined };
  }

  /**
   * Cuts what may not go on under rules that are in force; returns how many connections those were. May be called with the same
   * rules for ever. Rejects with CONNTRACK_FAILED; then the next call tries again.
   */
  async settle(rules: ExistingRules): Promise<number> {
    const cutOf = cutsAfter(this.#before, rules);
    const count = cutOf === undefined ? 0 : await this.#conntrack.cut(cutOf);
    this.#before = { rules, known: rules.known };
    return count;
  }
}
