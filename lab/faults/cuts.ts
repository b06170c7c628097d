import { must } from '../host/command.ts';
import { instanceOf } from '../host/instance.ts';
import type { Lab } from '../lab.ts';
import { fabric, inNamespace } from '../net/fabric.ts';

/** A dead way: frames from one member of the fabric do not reach the other. */
export interface Cut {
  readonly from: string;
  readonly to: string;
  /** `tunnel`: only packets of our tunnel are lost, all else passes. `ipv4`, `ipv6`: only that family, ARP with the one and ND with the other. */
  readonly what: 'everything' | 'tunnel' | 'ipv4' | 'ipv6';
}

/** The same both ways. */
export const bothWays = (one: string, other: string, what: Cut['what']): Cut[] => [
  { from: one, to: other, what },
  { from: other, to: one, what },
];

/** Between one member and each of the others. */
export const around = (one: string, others: readonly string[], what: Cut['what']): Cut[] =>
  others.filter((other) => other !== one).flatMap((other) => bothWays(one, other, what));

/** The UDP port of the tunnel, as the chart sets it where nobody says otherwise. */
const tunnelPort = 7789;

/** Makes these the dead ways of the lab, in place of those before; none heals all. In one step, and may be called again. */
export async function setCuts(lab: Lab, cuts: readonly Cut[]): Promise<void> {
  const elements = (what: Cut['what']) => {
    const pairs = cuts.filter((cut) => cut.what === what).map(({ from, to }) => `"${from}" . "${to}"`);
    return pairs.length === 0 ? '' : `elements = { ${[...new Set(pairs)].sort().join(', ')} }`;
  };
  const script = `table bridge faults
delete table bridge faults
table bridge faults {
  set everything { type ifname . ifname; ${elements('everything')}
  }
  set tunnel { type ifname . ifname; ${elements('tunnel')}
  }
  set ipv4 { type ifname . ifname; ${elements('ipv4')}
  }
  set ipv6 { type ifname . ifname; ${elements('ipv6')}
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    meta iifname . meta oifname @everything drop
    meta iifname . meta oifname @tunnel udp dport ${tunnelPort} drop
    meta iifname . meta oifname @ipv4 ether type { arp, ip } drop
    meta iifname . meta oifname @ipv6 ether type ip6 drop
  }
}
`;
  await must('cut ways', inNamespace(instanceOf(lab.name), fabric, ['nft', '-f', '-']), { input: script });
}
