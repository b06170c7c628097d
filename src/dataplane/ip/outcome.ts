/** NetworkOutcome: what a step did. A change that the kernel refuses becomes a refusal with a typed reason. */
import type { Reason } from '../../api/reasons.ts';
import type { Ip } from '../../core/ip/index.ts';
import type { LinkDesired } from '../../core/node/desired.ts';
import type { NetworkChange } from './change.ts';
import { ruleText } from './text.ts';

/** A change that was not made. */
export interface ChangeRefusal {
  /** For people: `address 10.6.0.100/32 on egw-eip`. */
  readonly what: string;
  /** What the kernel or the program said, as part of a sentence. */
  readonly message: string;
  readonly reason: Reason;
  /** The EIP or the peer that it is about. */
  readonly ip?: Ip;
}

/** What a step did. */
export interface NetworkOutcome {
  /** How many changes the kernel took; 0 when nothing differed. */
  readonly changed: number;
  readonly refused: readonly ChangeRefusal[];
}

/** Both outcomes as one. */
export const joined = (first: NetworkOutcome, second: NetworkOutcome): NetworkOutcome => ({
  changed: first.changed + second.changed,
  refused: [...first.refused, ...second.refused],
});

/** Nothing was to be done. */
export const nothingDone: NetworkOutcome = { changed: 0, refused: [] };

/** The refusal of a change, with the reason that its message tells. */
export const refusalOf = (change: NetworkChange, message: string): ChangeRefusal => {
  const { what, reason, causes = [], ip } = subjectOf(change);
  return {
    what,
    message: plain(message),
    reason: [...commonCauses, ...causes].find(({ pattern }) => pattern.test(message))?.reason ?? reason,
    ...(ip === undefined ? {} : { ip }),
  };
};

/** A device for people. */
export const linkText = ({ kind, name }: LinkDesired): string =>
  kind === 'vxlan' ? `tunnel device ${name}` : `EIP device ${name}`;

/** What a message of iproute2 or of the kernel means. */
interface RefusalCause {
  readonly pattern: RegExp;
  readonly reason: Reason;
}

/** What a change is about. `reason` is that of a refusal, unless the message tells a more special one. */
interface ChangeSubject {
  readonly what: string;
  readonly reason: Reason;
  readonly causes?: readonly RefusalCause[];
  readonly ip?: Ip;
}

const subjectOf = (change: NetworkChange): ChangeSubject => {
  const reason = 'RouteRefused';
  switch (change.kind) {
    case 'address': {
      const { ip, prefixLength, device } = change.address;
      return { what: `address ${ip}/${prefixLength} on ${device}`, reason, ip };
    }
    case 'neighbour': {
      const { ip, device } = change.neighbour;
      return { what: `neighbour ${ip} on ${device}`, reason, ip };
    }
    case 'peer-route': {
      const { ip, device } = change.way;
      return { what: `route to ${ip} on ${device}`, reason, ip };
    }
    case 'proxy': {
      const { ip, device } = change.proxy;
      return { what: `proxy entry for ${ip} on ${device}`, reason, ip };
    }
    case 'forwarding': {
      const { mac, to } = change.forwarding;
      return { what: `forwarding of ${mac} to ${to}`, reason, ip: to };
    }
    case 'rule':
      return { what: `IPv${change.rule.family} rule ${ruleText(change.rule)}`, reason };
    case 'route': {
      const { route } = change;
      if (change.verb === 'drop') {
        return { what: `route to ${change.route.destination} in table ${route.table}`, reason };
      }
      const { via } = change.route;
      return { what: `route via ${via} in table ${route.table}`, reason, ip: via };
    }
    case 'make-vxlan':
      return { what: linkText(change.link), reason, causes: vxlanCauses };
    case 'make-holder':
      return { what: `EIP device ${change.name}`, reason: 'EipDeviceFailed' };
    case 'set-link':
      return {
        what: linkText(change.link),
        reason: change.link.kind === 'vxlan' ? reason : 'EipDeviceFailed',
        // The port is bound when the device comes up.
        causes: [{ pattern: /Address already in use/, reason: 'TunnelPortTaken' }],
      };
    case 'drop-link':
      return { what: `device ${change.name}`, reason };
  }
};

const commonCauses: readonly RefusalCause[] = [{ pattern: /Operation not permitted/, reason: 'CapabilityMissing' }];

const vxlanCauses: readonly RefusalCause[] = [
  { pattern: /Unknown device type|not supported/i, reason: 'VxlanMissing' },
  { pattern: /"gbp"/, reason: 'GbpMissing' },
  { pattern: /VNI already exists|Address already in use/, reason: 'TunnelPortTaken' },
  { pattern: /Cannot find device/, reason: 'ParentInterfaceMissing' },
];

/** A message as part of a sentence: without who says it, in one line, without the full stop. */
const plain = (message: string): string =>
  message
    .split('\n')
    .map((part) =>
      part
        .trim()
        .replace(/^(Error: |RTNETLINK answers: )/, '')
        .replace(/\.$/, ''),
    )
    .filter((part) => part !== '')
    .join('; ');
