/** ToldOwners keeps the owners that nodes have told of, later than the record: of each EIP the one of the latest epoch. */
import type { Ip } from '../../core/ip/index.ts';
import type { NoticedOwner } from '../../core/ownership/planned.ts';

export class ToldOwners {
  readonly #ownerByEip = new Map<Ip, NoticedOwner>();
  /** A copy for passes; undefined when there is news. */
  #copy: ReadonlyMap<Ip, NoticedOwner> | undefined;

  /** All of them; the same value until there is news. */
  get all(): ReadonlyMap<Ip, NoticedOwner> {
    this.#copy ??= new Map(this.#ownerByEip);
    return this.#copy;
  }

  note(eip: Ip, { node, epoch }: NoticedOwner): void {
    const known = this.#ownerByEip.get(eip);
    if (known !== undefined && (epoch < known.epoch || (epoch === known.epoch && node === known.node))) return;
    this.#ownerByEip.set(eip, { node, epoch });
    this.#copy = undefined;
  }

  /** What is no longer recorded is over: if the address is given again, perhaps to another node, its epochs may begin anew. */
  keepOnly(recorded: ReadonlyMap<Ip, unknown>): void {
    for (const eip of this.#ownerByEip.keys()) {
      if (recorded.has(eip)) continue;
      this.#ownerByEip.delete(eip);
      this.#copy = undefined;
    }
  }
}
