/** LeaseLost is the reason with which the work of a leader is ended when another process may lead: nothing is finished first. */

/** Why a leader is no longer one without having asked for it. */
export type LeaseLoss = 'RenewDeadline' | 'TakenByOther';

export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
  readonly loss: LeaseLoss;

  constructor(loss: LeaseLoss) {
    super(`the lease was lost: ${loss}`);
    this.loss = loss;
  }
}
