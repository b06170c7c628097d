/**
 * How our devices come to be as desired. What the kernel cannot change on a vxlan device (identifier, port, parent, local
 * address, group policy, checksums) makes it a new device; MAC address and MTU are changed in place.
 */
import type { LinkDesired } from '../../core/node/desired.ts';
import type { LinkActual, NetworkActual } from './actual.ts';
import type { LinkSettings, NetworkChange } from './change.ts';
import type { LinkListed } from './listing.ts';
import { type ChangeRefusal, linkText } from './outcome.ts';
import { TAG } from './owned.ts';

/** What to do about one device. */
export interface LinkPlan {
  /** Devices that must go first. */
  readonly clear: readonly NetworkChange[];
  /** Ways to make the device; the first that the kernel takes is enough. Empty when it is there. */
  readonly make: readonly NetworkChange[];
  /** What to set on it. */
  readonly set: readonly NetworkChange[];
  /** Why nothing can be done. */
  readonly refusal?: ChangeRefusal;
}

/** Plans for the devices that are not as desired; none when all are. */
export const planLinks = (links: readonly LinkDesired[], actual: NetworkActual): readonly LinkPlan[] =>
  links.flatMap((link): LinkPlan[] => {
    const squatter = actual.squatters.find(({ name }) => name === link.name);
    if (squatter !== undefined) return [refusedPlan(link, squatter)];
    const found = actual.links.find(({ name }) => name === link.name);
    const kept = found !== undefined && isSameDevice(link, found) ? found : undefined;
    const set = settings(link, kept);
    if (kept !== undefined) return set === undefined ? [] : [{ clear: [], make: [], set: [set] }];
    return [
      {
        clear: inTheWay(link, actual).map(({ name }) => ({ kind: 'drop-link', name })),
        make: waysToMake(link),
        set: set === undefined ? [] : [set],
      },
    ];
  });

/** True when the device can carry what is meant for it. */
export const isUsable = (link: LinkDesired, actual: NetworkActual): boolean =>
  actual.links.some((found) => found.name === link.name && found.isUp && isSameDevice(link, found));

/** The refusal of a kernel that made a vxlan device but left the group policy out. */
export const refusalWithoutGbp = (link: LinkDesired, actual: NetworkActual): ChangeRefusal | undefined => {
  const found = actual.links.find(({ name, role }) => name === link.name && role === 'tunnel');
  if (link.kind !== 'vxlan' || found?.vxlan?.hasGbp !== false) return undefined;
  return { what: linkText(link), message: 'the kernel made it without gbp', reason: 'GbpMissing' };
};

const refusedPlan = (link: LinkDesired, squatter: LinkListed): LinkPlan => ({
  clear: [],
  make: [],
  set: [],
  refusal: {
    what: `device ${link.name}`,
    message: `the name belongs to ${squatter.kind === 'bridge' ? 'a bridge with ports' : 'another kind of device'}`,
    reason: 'DeviceNameTaken',
  },
});

const isSameDevice = (link: LinkDesired, { role, vxlan }: LinkActual): boolean => {
  if (link.kind === 'holder') return role === 'holder';
  return (
    vxlan !== undefined &&
    vxlan.id === link.id &&
    vxlan.port === link.port &&
    vxlan.parent === link.parent &&
    vxlan.local === link.local &&
    vxlan.hasGbp &&
    !vxlan.isLearning &&
    vxlan.hasChecksums === link.hasChecksums
  );
};

/** Our devices that stand for the same thing: the kernel has an identifier and an address only once. */
const inTheWay = ({ kind }: LinkDesired, { links }: NetworkActual): readonly LinkActual[] =>
  links.filter(({ role }) => role === (kind === 'vxlan' ? 'tunnel' : 'holder'));

const settings = (link: LinkDesired, kept: LinkActual | undefined): NetworkChange | undefined => {
  const settings: LinkSettings = {
    ...(kept?.alias === TAG ? {} : { alias: TAG }),
    ...(link.kind === 'vxlan' && kept?.mac !== link.mac ? { mac: link.mac } : {}),
    ...(link.kind === 'vxlan' && kept?.mtu !== link.mtu ? { mtu: link.mtu } : {}),
    ...(kept?.isUp === true ? {} : { isUp: true }),
  };
  return Object.keys(settings).length === 0 ? undefined : { kind: 'set-link', link, settings };
};

/** A kernel without the dummy device holds EIPs on a bridge without ports. */
const waysToMake = (link: LinkDesired): readonly NetworkChange[] => {
  if (link.kind === 'vxlan') return [{ kind: 'make-vxlan', link }];
  const { name } = link;
  return [
    { kind: 'make-holder', name, type: 'dummy' },
    { kind: 'make-holder', name, type: 'bridge' },
  ];
};
