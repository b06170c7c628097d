/** What a fake kernel prints, in the words of `ip -j -d` and `bridge -j` of iproute2 6.1. */
import { type FakeAddress, type FakeLink, type FakeRoute, type FakeState, isSecondary } from './kernel-state.ts';

const FOREVER = 2 ** 32 - 1;

/** The list that a `show` command prints; undefined for a command that shows nothing. */
export const show = (state: FakeState, words: readonly string[], family: 4 | 6): readonly object[] | undefined => {
  const [object, verb, what] = words;
  if (verb !== 'show') return undefined;
  switch (object) {
    case 'addr':
      return [...state.links].map(([name, link]) => linkFields(state, name, link));
    case 'rule':
      return [{ priority: 0, src: 'all', table: 'local' }, ...state.rules[family].map(ruleFields)];
    case 'route':
      return [...state.routes, ...connectedRoutes(state)].map(routeFields);
    case 'neigh':
      return what === 'proxy'
        ? state.proxies.map(({ device, ip, protocol }) => ({
            dst: ip,
            dev: device,
            proxy: null,
            ...(protocol === undefined ? {} : { protocol }),
          }))
        : state.neighbours.map(({ device, ip, mac }) => ({ dst: ip, dev: device, lladdr: mac, state: ['PERMANENT'] }));
    case 'fdb':
      return state.forwardings
        .filter(({ device }) => device === words.at(-1))
        .map(({ mac, to }) => ({ mac, dst: to, flags: ['self'], state: 'permanent' }));
    default:
      return undefined;
  }
};

const linkFields = (state: FakeState, name: string, link: FakeLink): object => ({
  ifname: name,
  flags: link.isUp ? ['BROADCAST', 'MULTICAST', 'UP', 'LOWER_UP'] : ['BROADCAST', 'MULTICAST'],
  mtu: link.mtu,
  ...(link.master === undefined ? {} : { master: link.master }),
  link_type: link.kind === 'loopback' ? 'loopback' : 'ether',
  address: link.mac,
  ...(link.kind === 'loopback' || link.kind === 'ether' ? {} : { linkinfo: linkInfo(link) }),
  ...(link.alias === undefined ? {} : { ifalias: link.alias }),
  addr_info: state.addresses.filter(({ device }) => device === name).map((address) => addressFields(state, address)),
});

const linkInfo = ({ kind, options }: FakeLink): object => {
  if (kind !== 'vxlan') return { info_kind: kind };
  const local = options.get('local') ?? '';
  return {
    info_kind: kind,
    info_data: {
      id: Number(options.get('id')),
      [local.includes(':') ? 'local6' : 'local']: local,
      link: options.get('dev'),
      port: Number(options.get('dstport')),
      learning: !options.has('nolearning'),
      udp_csum: !options.has('noudpcsum'),
      udp_zero_csum6_tx: options.has('udp6zerocsumtx'),
      udp_zero_csum6_rx: options.has('udp6zerocsumrx'),
      ...(options.has('gbp') ? { gbp: true } : {}),
    },
  };
};

const addressFields = (state: FakeState, address: FakeAddress): object => ({
  family: address.ip.includes(':') ? 'inet6' : 'inet',
  local: address.ip,
  prefixlen: address.prefixLength,
  scope: address.ip.startsWith('fe80:') ? 'link' : 'global',
  ...(isSecondary(address, state.addresses) ? { secondary: true } : {}),
  valid_life_time: FOREVER,
  preferred_life_time: address.isDeprecated ? 0 : FOREVER,
});

const ruleFields = (rule: string): object => {
  const words = rule.split(' ');
  const after = (name: string): string | undefined =>
    words.includes(name) ? words[words.indexOf(name) + 1] : undefined;
  const [mark, mask] = (after('fwmark') ?? '').split('/');
  const goto = after('goto');
  const source = after('from');
  return {
    priority: Number(after('pref')),
    src: source ?? 'all',
    ...(mark === '' ? {} : { fwmark: mark === '0x0' ? '0' : mark }),
    ...(mask === undefined || mask === '0xffffffff' ? {} : { fwmask: mask }),
    ...(goto === undefined ? { table: after('lookup') } : { goto: Number(goto) }),
    protocol: after('protocol') ?? 'unspec',
  };
};

/** Routes that the kernel makes for the networks of addresses on devices that are up. */
const connectedRoutes = (state: FakeState): readonly FakeRoute[] =>
  state.addresses
    .filter(
      ({ device, prefixLength, ip }) => state.links.get(device)?.isUp && prefixLength < (ip.includes(':') ? 128 : 32),
    )
    .filter(({ device }) => device !== 'lo')
    .map(({ device, ip, prefixLength }) => ({
      family: ip.includes(':') ? 6 : 4,
      table: 'main',
      type: 'unicast',
      destination: networkOf(ip, prefixLength),
      via: undefined,
      device,
      metric: ip.includes(':') ? 256 : 0,
    }));

// Tests use IPv4 prefixes of whole bytes and IPv6 prefixes that end at `::`.
const networkOf = (ip: string, prefixLength: number): string =>
  ip.includes(':')
    ? `${ip.slice(0, ip.indexOf('::'))}::/${prefixLength}`
    : `${ip
        .split('.')
        .map((part, index) => (index < prefixLength / 8 ? part : '0'))
        .join('.')}/${prefixLength}`;

const routeFields = ({ family, table, type, destination, via, device, metric }: FakeRoute): object => ({
  type,
  dst: destination,
  ...(via === undefined ? {} : { gateway: via }),
  ...(device === undefined ? {} : { dev: device }),
  table,
  ...(family === 4 && metric === 0 ? {} : { metric }),
  flags: [],
  ...(family === 6 ? { pref: 'medium' } : {}),
});
