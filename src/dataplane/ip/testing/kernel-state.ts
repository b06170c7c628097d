/** What a fake kernel holds. */

export interface FakeLink {
  readonly kind: string;
  isUp: boolean;
  mtu: number;
  mac: string;
  alias: string | undefined;
  master: string | undefined;
  /** As `ethtool -K` sets it. */
  hasGro: boolean;
  /** Words of `link add ... type vxlan`, by name; a word without value is the empty text. */
  readonly options: ReadonlyMap<string, string>;
}

export interface FakeAddress {
  readonly device: string;
  readonly ip: string;
  readonly prefixLength: number;
  readonly isDeprecated: boolean;
}

export interface FakeRoute {
  readonly family: 4 | 6;
  readonly table: string;
  readonly destination: string;
  readonly type: string;
  readonly via: string | undefined;
  readonly device: string | undefined;
  readonly metric: number;
}

export interface FakeNeighbour {
  readonly device: string;
  readonly ip: string;
  readonly mac: string;
}

/** All of it. Rules are the words after `rule add`, in the order of their priority. */
export interface FakeState {
  readonly links: Map<string, FakeLink>;
  addresses: readonly FakeAddress[];
  routes: readonly FakeRoute[];
  readonly rules: Record<4 | 6, readonly string[]>;
  neighbours: readonly FakeNeighbour[];
  proxies: readonly { readonly device: string; readonly ip: string; readonly protocol: string | undefined }[];
  forwardings: readonly { readonly device: string; readonly mac: string; readonly to: string }[];
}

/** A command that fails. Some of them end the whole program, as neighbours do in iproute2 6.1. */
export class CommandFailed extends Error {
  readonly endsProgram: boolean;
  constructor(message: string, endsProgram = false) {
    super(message);
    this.endsProgram = endsProgram;
  }
}

/** A machine with a loopback device and the rules that every machine has. */
export const emptyState = (): FakeState => ({
  links: new Map([['lo', linkOf('loopback', { mtu: 65536, mac: '00:00:00:00:00:00', isUp: true })]]),
  addresses: [{ device: 'lo', ip: '127.0.0.1', prefixLength: 8, isDeprecated: false }],
  routes: [],
  rules: { 4: ['pref 32766 lookup main', 'pref 32767 lookup default'], 6: ['pref 32766 lookup main'] },
  neighbours: [],
  proxies: [],
  forwardings: [],
});

/** A device as it is made. */
export const linkOf = (
  kind: string,
  { mtu = 1500, mac = '02:00:00:00:00:01', isUp = false, options = new Map<string, string>() },
): FakeLink => ({
  kind,
  isUp,
  mtu,
  mac,
  alias: undefined,
  master: undefined,
  hasGro: true,
  options,
});

/** The word after another; undefined when that one is not there. */
export const after = (words: readonly string[], name: string): string | undefined => {
  const place = words.indexOf(name);
  return place < 0 ? undefined : words[place + 1];
};

/** A device by its name. */
export const linkNamed = (state: FakeState, name: string | undefined, endsProgram = false): FakeLink => {
  const link = state.links.get(name ?? '');
  if (link === undefined) throw new CommandFailed(`Cannot find device "${name}"`, endsProgram);
  return link;
};

/** True for an IPv4 address that is not the first in its network. */
export const isSecondary = (address: FakeAddress, all: readonly FakeAddress[]): boolean =>
  !address.ip.includes(':') && all.find((other) => networkKey(other) === networkKey(address))?.ip !== address.ip;

/** Addresses of one network have the same key. Tests use prefixes of whole bytes only. */
export const networkKey = ({ device, ip, prefixLength }: FakeAddress): string =>
  `${device} ${prefixLength} ${
    ip.includes(':')
      ? ip
      : ip
          .split('.')
          .slice(0, prefixLength / 8)
          .join('.')
  }`;
