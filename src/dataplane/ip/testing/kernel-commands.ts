/** What commands do to a fake kernel: as much of iproute2 as Sallyport and its tests say. */
import { isDeepStrictEqual } from 'node:util';
import { executeLink } from './kernel-links.ts';
import {
  after,
  CommandFailed,
  type FakeAddress,
  type FakeRoute,
  type FakeState,
  isSecondary,
  linkNamed,
  networkKey,
} from './kernel-state.ts';

/** Does what a command says. Throws CommandFailed with the words of iproute2 or of the kernel. */
export const execute = (
  state: FakeState,
  words: readonly string[],
  family: 4 | 6,
  lacks: ReadonlySet<string>,
): void => {
  const [object = '', verb = '', ...rest] = words;
  if (object === 'neigh' && rest[0] === 'proxy') executeProxy(state, verb, rest.slice(1));
  else if (object === 'link') executeLink(state, verb, rest, lacks);
  else if (object === 'rule') executeRule(state, verb, rest, family);
  else {
    const command = commands[object];
    if (command === undefined) throw new CommandFailed(`Object "${object}" is unknown, try "ip help".`);
    command(state, verb, rest);
  }
};

const executeAddress = (state: FakeState, verb: string, words: readonly string[]): void => {
  const device = after(words, 'dev') ?? '';
  linkNamed(state, device);
  const [ip = '', length = '32'] = (words[0] ?? '').split('/');
  const address = { device, ip, prefixLength: Number(length), isDeprecated: after(words, 'preferred_lft') === '0' };
  const others = state.addresses.filter(
    (other) => !(other.device === device && other.ip === ip && other.prefixLength === address.prefixLength),
  );
  if (verb === 'del' && others.length === state.addresses.length)
    throw new CommandFailed('Error: ipv4: Address not found.');
  if (verb === 'add' && others.length < state.addresses.length)
    throw new CommandFailed('RTNETLINK answers: File exists');
  const place =
    state.addresses.length === others.length
      ? others.length
      : state.addresses.findIndex((other) => !others.includes(other));
  state.addresses =
    verb === 'del'
      ? others.filter((other) => !goesAlong(other, address, state.addresses))
      : others.toSpliced(place, 0, address);
};

/** True for IPv4 addresses that came into a network after the first one, which goes now. */
const goesAlong = (other: FakeAddress, gone: FakeAddress, all: readonly FakeAddress[]): boolean =>
  isSecondary(other, all) && networkKey(other) === networkKey(gone) && !isSecondary(gone, all);

const routeTypes = ['unreachable', 'blackhole', 'prohibit'];

const executeRoute = (state: FakeState, verb: string, words: readonly string[]): void => {
  const isTyped = routeTypes.includes(words[0] ?? '');
  const type = isTyped ? (words[0] ?? '') : 'unicast';
  const to = words[isTyped ? 1 : 0] ?? '';
  const via = after(words, 'via');
  const device = after(words, 'dev');
  const family = [to, via ?? ''].some((text) => text.includes(':')) ? 6 : 4;
  const destination = to === '::/0' ? 'default' : to;
  const table = after(words, 'table') ?? 'main';
  const metric = after(words, 'metric');
  if (device !== undefined && !linkNamed(state, device).isUp)
    throw new CommandFailed('Error: Nexthop device is not up.');
  const isSame = (route: FakeRoute): boolean =>
    route.family === family &&
    route.table === table &&
    route.destination === destination &&
    (verb === 'del' && metric === undefined ? true : route.metric === Number(metric ?? (family === 4 ? 0 : 1024))) &&
    (verb !== 'del' || ((via === undefined || route.via === via) && (device === undefined || route.device === device)));
  const found = state.routes.find(isSame);
  if (verb === 'del') {
    if (found === undefined) throw new CommandFailed('RTNETLINK answers: No such process');
    state.routes = state.routes.filter((route) => route !== found);
    return;
  }
  if (verb === 'add' && found !== undefined) throw new CommandFailed('RTNETLINK answers: File exists');
  const route = {
    family,
    table,
    destination,
    type,
    via,
    device,
    metric: Number(metric ?? (family === 4 ? 0 : 1024)),
  } as const;
  // An appended route stays behind the one that is there, and takes over when that one goes.
  state.routes =
    verb === 'append' ? [...state.routes, route] : [...state.routes.filter((other) => other !== found), route];
};

const executeRule = (state: FakeState, verb: string, words: readonly string[], family: 4 | 6): void => {
  const text = words.join(' ');
  const rules = state.rules[family];
  if (verb === 'add') {
    if (rules.includes(text)) throw new CommandFailed('RTNETLINK answers: File exists');
    state.rules[family] = [...rules, text].toSorted((a, b) => Number(a.split(' ')[1]) - Number(b.split(' ')[1]));
    return;
  }
  // What the command does not mention may be anything, as in the kernel.
  const place = rules.findIndex((rule) => pairsOf(words).every((pair) => pairsOf(rule.split(' ')).includes(pair)));
  if (place < 0) throw new CommandFailed('RTNETLINK answers: No such file or directory');
  state.rules[family] = rules.toSpliced(place, 1);
};

const pairsOf = (words: readonly string[]): readonly string[] =>
  words.flatMap((word, index) => (index % 2 === 0 ? [`${word} ${words[index + 1]}`] : []));

const executeNeighbour = (state: FakeState, verb: string, words: readonly string[]): void => {
  const device = after(words, 'dev') ?? '';
  if (!linkNamed(state, device).isUp && verb !== 'del')
    throw new CommandFailed('RTNETLINK answers: Network is down', true);
  const ip = words[0] ?? '';
  const mac = after(words, 'lladdr') ?? '';
  if (verb !== 'del' && mac.split(':').length !== 6) throw new CommandFailed('Error: Invalid link address.', true);
  const others = state.neighbours.filter((other) => other.device !== device || other.ip !== ip);
  if (verb === 'del' && others.length === state.neighbours.length) {
    throw new CommandFailed('RTNETLINK answers: No such file or directory', true);
  }
  state.neighbours = verb === 'del' ? others : [...others, { device, ip, mac }];
};

const executeProxy = (state: FakeState, verb: string, words: readonly string[]): void => {
  const device = after(words, 'dev') ?? '';
  linkNamed(state, device);
  const ip = words[0] ?? '';
  const others = state.proxies.filter((other) => other.device !== device || other.ip !== ip);
  if (verb === 'del' && others.length === state.proxies.length) {
    throw new CommandFailed('RTNETLINK answers: No such file or directory', true);
  }
  state.proxies = verb === 'del' ? others : [...others, { device, ip, protocol: after(words, 'protocol') }];
};

const executeForwarding = (state: FakeState, verb: string, words: readonly string[]): void => {
  const device = after(words, 'dev') ?? '';
  linkNamed(state, device);
  const entry = { device, mac: words[0] ?? '', to: after(words, 'dst') ?? '' };
  const others = state.forwardings.filter((other) => other.device !== device || other.mac !== entry.mac);
  if (verb === 'del' && !state.forwardings.some((other) => isDeepStrictEqual(other, entry))) {
    throw new CommandFailed('RTNETLINK answers: No such file or directory');
  }
  state.forwardings = verb === 'del' ? others : [...others, entry];
};

const commands: Readonly<Record<string, (state: FakeState, verb: string, words: readonly string[]) => void>> = {
  addr: executeAddress,
  route: executeRoute,
  neigh: executeNeighbour,
  fdb: executeForwarding,
};
