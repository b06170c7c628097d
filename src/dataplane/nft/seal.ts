/**
 * The table `inet sallyport_seal`: what stands when somebody has taken an element, a rule, a chain or all of the main table.
 * It sees packets on their way through the node, after the main table has judged them, and knows little: the sources that
 * are under policies, and the marks that the main table leaves. A connection of such a source that was not judged, and a
 * packet that should have a mark and has none, go nowhere (ADR 0033).
 *
 * It changes in the same transactions as the main table, and is there only where there is something to seal, so that
 * packets of other nodes do not pay for its chain.
 */
import type { TableDesired, TableElements } from '../../core/node/desired.ts';
import { KIND_MASK, LEAVE_ALONE, markText, SLOT_KIND } from '../../core/node/numbers.ts';
import { readChains, readContainers } from './read.ts';
import type { ChainRecord } from './record.ts';
import { SEAL } from './stored.ts';

/** Its sets, with the containers of the main table whose keys they have. */
const sets = [
  { name: 'pods4', type: 'ipv4_addr;', of: 'pod4' },
  { name: 'pods6', type: 'ipv6_addr;', of: 'pod6' },
  { name: 'nets4', type: 'ipv4_addr; flags interval;', of: 'net4' },
  { name: 'nets6', type: 'ipv6_addr; flags interval;', of: 'net6' },
] as const;
type SealSources = Pick<TableElements, (typeof sets)[number]['of']>;

interface SealDesired {
  /** Name of the tunnel device. */
  readonly device: string;
  readonly sources: SealSources;
}

/** What the kernel holds of the seal, and the commands that make it hold something else. */
export class KernelSeal {
  /** Undefined: there is none, or not as we make it. */
  #held: SealDesired | undefined;
  /** False: the kernel may hold one that is to go. */
  #isAbsent = false;

  /** Commands for nft, to be added to those for the main table; empty when nothing differs. */
  scriptFor(table: TableDesired): string {
    const desired = desiredOf(table);
    const held = this.#held;
    if (desired === undefined) return this.#isAbsent ? '' : renderSealRemoval();
    if (held?.device !== desired.device) return renderSeal(desired);
    return elementsOf('delete', held.sources, desired.sources) + elementsOf('add', desired.sources, held.sources);
  }

  /** The commands of scriptFor were run. True if the whole table was made. */
  settle(table: TableDesired): boolean {
    const desired = desiredOf(table);
    const wasMade = desired !== undefined && this.#held?.device !== desired.device;
    this.#held = desired;
    this.#isAbsent = desired === undefined;
    return wasMade;
  }

  /** Takes over what the kernel lists; undefined: no such table. True if that is not what it held by our account. */
  learn(json: string | undefined, made: ChainRecord['seal']): boolean {
    const before = this.#held;
    const isOurs = json !== undefined && made !== undefined && readChains(json) === made.chains;
    const now = isOurs ? { device: made.device, sources: sourcesIn(json) } : undefined;
    this.#held = now;
    this.#isAbsent = json === undefined;
    if (before === undefined) return false;
    if (now === undefined) return true;
    return elementsOf('add', now.sources, before.sources) + elementsOf('add', before.sources, now.sources) !== '';
  }
}

/** Something is sealed where sources are under policies, or slots leave. */
const desiredOf = ({ settings, elements }: TableDesired): SealDesired | undefined => {
  const { pod4, pod6, net4, net6, slot_eip4, slot_eip6 } = elements;
  const isNeeded = [pod4, pod6, net4, net6, slot_eip4, slot_eip6].some(({ size }) => size > 0);
  return isNeeded ? { device: settings.device, sources: { pod4, pod6, net4, net6 } } : undefined;
};

/** The whole table, in place of one that may be there. */
const renderSeal = ({ device, sources }: SealDesired): string =>
  [
    `${renderSealRemoval()}table inet ${SEAL} {`,
    ...sets.map(({ name, type }) => `  set ${name} { type ${type} }`),
    ...sealChains(device).map((line) => `  ${line}`),
    '}',
    elementsOf('add', sources, undefined),
  ].join('\n');

/** Deletes it, whether it is there or not. */
export const renderSealRemoval = (): string => `table inet ${SEAL}\ndelete table inet ${SEAL}\n`;

/**
 * After routing, and before sources are translated. Packets with a mark of ours (to a gateway node, back to a worker, out with
 * an EIP: 0x26 to 0x28) pass at once: nearly every packet of a policy meets that rule only.
 */
const sealChains = (device: string): readonly string[] => [
  'chain forward {',
  '  type filter hook forward priority filter; policy accept;',
  `  meta mark and ${markText(0xf0000000)} == ${markText(0x20000000)} return`,
  // Connections that go on without the table that chooses their gateway node.
  `  ct mark and ${markText(KIND_MASK)} == ${markText(SLOT_KIND)} ct direction original drop`,
  `  ct state new ct mark and ${markText(KIND_MASK)} != ${markText(LEAVE_ALONE)} jump unjudged`,
  // What workers send and nobody has given an EIP; answers to pods come through the tunnel too.
  `  iifname "${device}" ct direction original drop`,
  '}',
  'chain unjudged {',
  ...sets.map(({ name }) => `  ${name.endsWith('4') ? 'ip' : 'ip6'} saddr @${name} drop`),
  '}',
];

/** Commands for the sources of `some` that `others` do not have. */
const elementsOf = (verb: 'add' | 'delete', some: SealSources, others: SealSources | undefined): string =>
  sets
    .flatMap(({ name, of }) => {
      const held = others?.[of];
      if (some[of] === held) return [];
      const keys = [...some[of].keys()].filter((key) => held?.has(key) !== true);
      return keys.length === 0 ? [] : [`${verb} element inet ${SEAL} ${name} { ${keys.join(', ')} }\n`];
    })
    .join('');

const none: ReadonlyMap<string, string> = new Map();

const sourcesIn = (json: string): SealSources => {
  const held = readContainers(json);
  // The entries are made from all names.
  return Object.fromEntries(sets.map(({ name, of }) => [of, held.get(name) ?? none])) as unknown as SealSources;
};
