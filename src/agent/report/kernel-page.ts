/** The page /kernel: what the kernel of this node holds about a source or a slot, for egctl. It changes nothing. */
import { parseIp } from '../../core/ip/index.ts';
import { kernelViewOf } from '../../core/node/kernel-view.ts';
import { SLOT_MASK } from '../../core/node/numbers.ts';
import type { Page, PageAnswer } from '../../runtime/serve/health.ts';
import type { Kernel } from '../kernel/kernel.ts';

/** What the page needs. */
export interface KernelPageDeps {
  readonly node: string;
  readonly nftables: Pick<Kernel['nftables'], 'read'>;
  readonly gatewayNumbers: () => ReadonlyMap<string, number>;
}

/**
 * Makes the page. The kernel is read for every question, because the answer must not be what we think it holds; the
 * readings of nftables wait for each other, so that many questions are slow but do no harm.
 */
export const kernelPage =
  ({ node, nftables, gatewayNumbers }: KernelPageDeps): Page =>
  async (query) => {
    const ipText = query.get('ip');
    const ip = ipText === null ? undefined : parseIp(ipText);
    if (ip?.ok === false) return json(400, { error: `ip: ${ip.message}` });
    const slotText = query.get('slot');
    const slot = slotText === null ? undefined : Number(slotText);
    if (slot !== undefined && !(Number.isInteger(slot) && slot >= 1 && slot <= SLOT_MASK)) {
      return json(400, { error: `slot: "${slotText}" is not a number from 1 to ${SLOT_MASK}` });
    }
    const table = await nftables.read();
    return json(200, kernelViewOf(node, table?.elements, gatewayNumbers(), { ip: ip?.value, slot }));
  };

const json = (status: number, value: unknown): PageAnswer => ({
  status,
  contentType: 'application/json',
  body: `${JSON.stringify(value)}\n`,
});
