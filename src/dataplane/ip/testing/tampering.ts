/** What others do to a node of which `everything` is desired (desired.ts). */

/** Commands of somebody else after which everything must come back. */
export const drifts: readonly string[] = [
  'ip link del egress.vxlan',
  'ip link set egress.vxlan down',
  'ip link set egress.vxlan mtu 1300',
  'ip link set egress.vxlan address 66:00:00:00:00:99',
  'ip link set egress.vxlan alias somebody',
  'ip link del egw-eip',
  'ip link set egw-eip down',
  'ip addr del 172.31.0.11/32 dev egress.vxlan',
  'ip addr del fd06::100/128 dev egw-eip',
  'ip addr replace fd06::100/128 dev egw-eip preferred_lft forever',
  'ip addr add 10.6.0.200/32 dev egw-eip',
  'ip addr add 172.31.0.99/16 dev egress.vxlan',
  'ip rule del pref 94 fwmark 0x260c0000/0xffff0000 lookup 2612',
  'ip -6 rule del pref 94 fwmark 0x260c0000/0xffff0000 lookup 2612',
  'ip rule add pref 94 fwmark 0x26ee0000/0xffff0000 lookup 2838',
  'ip route del default via 172.31.0.12 dev egress.vxlan table 2612',
  'ip route replace default via 10.6.0.1 dev eth0 table 2612',
  'ip route append default via 10.6.0.1 dev eth0 table 2612',
  'ip route add default via 172.31.0.12 dev egress.vxlan onlink table 2612 metric 5',
  'ip route add unreachable default table 2612 metric 7',
  'ip route add 192.0.2.0/24 via 10.6.0.1 dev eth0 table 2613',
  'ip -6 route replace default via fd06::1 dev eth0 table 2612',
  'ip neigh del 172.31.0.12 dev egress.vxlan',
  'ip route del 172.31.0.12 dev egress.vxlan',
  'ip -6 route del fd11::12 dev egress.vxlan',
  'ip route add 172.31.0.77 dev egress.vxlan',
  'ip neigh replace fd11::12 lladdr 66:00:00:00:00:99 dev egress.vxlan nud permanent',
  'ip neigh replace 172.31.0.77 lladdr 66:00:00:00:00:99 dev egress.vxlan nud permanent',
  'ip neigh del proxy fd06::100 dev eth0',
  'ip neigh replace proxy fd06::777 dev eth0 protocol 38',
  'bridge fdb del 66:00:00:00:00:0c dev egress.vxlan dst 10.6.0.12',
  'bridge fdb replace 66:00:00:00:00:0c dev egress.vxlan dst 10.6.0.99',
  'bridge fdb replace 66:00:00:00:00:99 dev egress.vxlan dst 10.6.0.99',
];

/** The tunnel addresses as they were before they had a route of their own: with their range. */
export const withRanges: readonly string[] = [
  'ip addr del 172.31.0.11/32 dev egress.vxlan',
  'ip addr add 172.31.0.11/16 dev egress.vxlan',
  'ip addr del fd11::11/128 dev egress.vxlan',
  'ip addr add fd11::11/112 dev egress.vxlan nodad',
];

/** Things of others that look a little like ours. */
export const foreign: readonly string[] = [
  'ip rule add pref 94 fwmark 0x26010000/0xffff0000 lookup 5000',
  'ip rule add pref 94 from 10.9.0.0/16 fwmark 0x26010000/0xffff0000 lookup 2601',
  'ip rule add pref 99 fwmark 0x26010000/0xffff0000 lookup 2601',
  'ip route add default via 10.6.0.1 dev eth0 table 5000',
  'ip addr add 10.6.0.55/32 dev eth0',
  'ip neigh replace proxy fd06::55 dev eth0',
  'ip neigh replace 10.6.0.66 lladdr 66:00:00:00:00:66 dev eth0 nud permanent',
  'ip link add other type bridge',
];

/** The command that undoes one of `foreign`. */
export const takenAway = (line: string): string =>
  line
    .replace(' add ', ' del ')
    .replace(' replace ', ' del ')
    .replace(/ (type bridge|lladdr \S+|nud permanent)/g, '');
