/** The tables of the two nodes of nft-network.ts: the pod is under one policy, whose slot 1 the gateway node serves. */
import type { TableDesired, TableElements } from '../../src/core/node/desired.ts';
import { classMark, gatewayMark, markText, replyMark, slotMark, snatMark } from '../../src/core/node/numbers.ts';
import { settings, smallTable } from '../../src/dataplane/nft/testing/tables.ts';
import { addresses, DEVICE, macs } from './nft-network.ts';

const empty = Object.fromEntries(Object.keys(smallTable.elements).map((name) => [name, new Map()]));

/** A table with the node addresses and the given containers; everything else is empty. */
export const tableOf = (elements: Partial<TableElements>): TableDesired => ({
  settings: { ...settings, device: DEVICE },
  // All names come from a whole table.
  elements: {
    ...(empty as unknown as TableElements),
    vteps4: new Map([
      [addresses[4].worker, ''],
      [addresses[4].gateway, ''],
    ]),
    ...elements,
  },
});

/** The marks of the class of the pod, of the slot of its policy, and of that slot where it leaves. */
export const CLASS = markText(classMark(1));
export const SLOT = markText(slotMark(1));
export const SNAT = markText(snatMark(1));

/** What the worker holds. */
export const worker: Partial<TableElements> = {
  pod4: new Map([[addresses[4].pod, CLASS]]),
  pod6: new Map([[addresses[6].pod, CLASS]]),
  cluster4: new Map([['10.244.0.0/16', '']]),
  cluster6: new Map([['fd44::/16', '']]),
  dflt4: new Map([[CLASS, SLOT]]),
  dflt6: new Map([[CLASS, SLOT]]),
  slot_fwd: new Map([[SLOT, markText(gatewayMark(1, 1))]]),
};

/** What the gateway node holds. */
export const gateway: Partial<TableElements> = {
  eips4: new Map([[addresses[4].eip, '']]),
  eips6: new Map([[addresses[6].eip, '']]),
  slot_eip4: new Map([[SNAT, addresses[4].eip]]),
  slot_eip6: new Map([[SNAT, addresses[6].eip]]),
  vtep_node: new Map([[macs.worker, markText(replyMark(0x11))]]),
};
