/** Devices of a fake kernel: what `ip link` does to them, and what goes with them. */
import { after, CommandFailed, type FakeLink, type FakeState, linkNamed, linkOf } from './kernel-state.ts';

/** Does what `ip link` says. */
export const executeLink = (
  state: FakeState,
  verb: string,
  words: readonly string[],
  lacks: ReadonlySet<string>,
): void => {
  if (verb === 'add') addLink(state, words, lacks);
  else if (verb === 'del') deleteLink(state, after(words, 'dev') ?? words[0] ?? '');
  else setLink(state, after(words, 'dev') ?? words[0] ?? '', words);
};

const setLink = (state: FakeState, name: string, words: readonly string[]): void => {
  const link = linkNamed(state, name);
  if (words.includes('alias')) link.alias = after(words, 'alias');
  if (words.includes('mtu')) link.mtu = Number(after(words, 'mtu'));
  if (words.includes('master')) link.master = after(words, 'master');
  if (words.includes('address')) {
    link.mac = after(words, 'address') ?? '';
    // Neighbours were learnt, or written, for the device as it was.
    state.neighbours = state.neighbours.filter(({ device }) => device !== name);
  }
  if (words.includes('up')) setUp(state, name, link);
  if (words.includes('down')) setDown(state, name, link);
};

const addLink = (state: FakeState, words: readonly string[], lacks: ReadonlySet<string>): void => {
  const name = words[0] === 'name' ? (words[1] ?? '') : (words[0] ?? '');
  const kind = after(words, 'type') ?? '';
  const options = kind === 'vxlan' ? vxlanOptions(words.slice(words.indexOf('vxlan') + 1)) : new Map<string, string>();
  if (lacks.has(kind)) throw new CommandFailed('Error: Unknown device type.');
  // An old kernel passes over attributes that it does not know.
  if (lacks.has('gbp')) options.delete('gbp');
  if (state.links.has(name)) throw new CommandFailed('RTNETLINK answers: File exists');
  if (kind === 'vxlan') {
    linkNamed(state, options.get('dev'), true);
    const isTaken = [...state.links.values()].some(
      (other) =>
        other.kind === 'vxlan' && ['id', 'dstport'].every((key) => other.options.get(key) === options.get(key)),
    );
    if (isTaken) throw new CommandFailed('Error: A VXLAN device with the specified VNI already exists.');
  }
  state.links.set(name, linkOf(kind, { options }));
  if (kind === 'veth') state.links.set(after(words.slice(words.indexOf('peer')), 'name') ?? '', linkOf('veth', {}));
};

const vxlanOptions = (words: readonly string[]): Map<string, string> => {
  const valued = new Set(['id', 'dev', 'local', 'dstport']);
  return new Map(words.map((word, index) => [word, valued.has(word) ? (words[index + 1] ?? '') : '']));
};

const deleteLink = (state: FakeState, name: string): void => {
  linkNamed(state, name);
  for (const [other, { options }] of [...state.links]) if (options.get('dev') === name) deleteLink(state, other);
  state.links.delete(name);
  const stays = ({ device }: { readonly device: string | undefined }): boolean => device !== name;
  state.addresses = state.addresses.filter(stays);
  state.routes = state.routes.filter(stays);
  state.neighbours = state.neighbours.filter(stays);
  state.proxies = state.proxies.filter(stays);
  state.forwardings = state.forwardings.filter(stays);
};

const setUp = (state: FakeState, name: string, link: FakeLink): void => {
  const port = link.options.get('dstport');
  const isBound = [...state.links].some(
    ([other, { kind, isUp, options }]) =>
      other !== name &&
      kind === 'vxlan' &&
      isUp &&
      options.get('dstport') === port &&
      options.has('gbp') !== link.options.has('gbp'),
  );
  if (link.kind === 'vxlan' && isBound) throw new CommandFailed('RTNETLINK answers: Address already in use');
  link.isUp = true;
};

/** Routes need a device that is up, and IPv6 addresses do not outlive it. */
const setDown = (state: FakeState, name: string, link: FakeLink): void => {
  link.isUp = false;
  state.routes = state.routes.filter(({ device }) => device !== name);
  state.addresses = state.addresses.filter(({ device, ip }) => device !== name || !ip.includes(':'));
  state.neighbours = state.neighbours.filter(({ device }) => device !== name);
};
