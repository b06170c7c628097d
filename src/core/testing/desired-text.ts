/** A NodeDesired as text that people can read and files can hold: one line per thing, sorted. Not shipped. */

import type { LinkDesired, NodeDesired, RuleDesired } from '../node/desired.ts';
import { markText } from '../node/numbers.ts';
import { compareText } from '../values/hash.ts';

/** The text; parts that are empty are left out. */
export const desiredText = ({ table, network, sysctls, claims, unclaimed, problems, gatewayNumbers }: NodeDesired) => {
  const { settings, elements } = table;
  const { links, addresses, rules, routes, neighbours, forwardings, proxies } = network;
  return [
    section('chains', [
      `${settings.device}, port ${settings.port}, segments ${Object.values(settings.mss).join(' and ')}`,
    ]),
    ...Object.entries(elements)
      .toSorted(([a], [b]) => compareText(a, b))
      .map(([name, entries]) => section(name, pairs(entries, ' : '))),
    section('links', links.map(linkText)),
    section(
      'addresses',
      addresses.map(({ device, ip, prefixLength }) => `${device} ${ip}/${prefixLength}`),
    ),
    section('rules', rules.map(ruleText)),
    section(
      'routes',
      routes.map(({ table: number, via, device }) => `table ${number} default via ${via} dev ${device}`),
    ),
    section(
      'neighbours',
      neighbours.map(({ device, ip, mac }) => `${device} ${ip} is ${mac}`),
    ),
    section(
      'forwardings',
      forwardings.map(({ device, mac, to }) => `${device} ${mac} to ${to}`),
    ),
    section(
      'proxies',
      proxies.map(({ device, ip }) => `${device} ${ip}`),
    ),
    section('sysctls', pairs(sysctls, ' = ')),
    section(
      'claims',
      claims.map(({ ip, interfaces }) => `${ip} on ${interfaces.join()}`),
    ),
    section(
      'unclaimed',
      unclaimed.map(({ ip, interfaces }) => `${ip} on ${interfaces.join()}`),
    ),
    section(
      'problems',
      problems.map(({ finding, policy }) => `${policy ?? 'node'}: ${finding.reason}: ${finding.sentence}`),
    ),
    section('gateway numbers', [...gatewayNumbers].map(([node, number]) => `${node} ${number}`).toSorted(compareText)),
  ].join('');
};

const section = (name: string, lines: readonly string[]): string =>
  lines.length === 0 ? '' : `${name}\n${lines.map((line) => `  ${line}\n`).join('')}`;

const pairs = (entries: ReadonlyMap<string, string>, between: string): string[] =>
  [...entries].map(([key, value]) => (value === '' ? key : `${key}${between}${value}`)).toSorted(compareText);

const linkText = (link: LinkDesired): string =>
  link.kind === 'holder'
    ? `${link.name} holder`
    : `${link.name} vxlan id ${link.id} port ${link.port} parent ${link.parent} local ${link.local} mac ${link.mac} mtu ${link.mtu} checksums ${link.hasChecksums} gro ${link.hasGro}`;

const ruleText = ({ family, priority, mark, mask, action }: RuleDesired): string => {
  const target = action.kind === 'lookup' ? `lookup ${action.table}` : `goto ${action.priority}`;
  return `IPv${family} ${priority}: mark ${markText(mark)}/${markText(mask)} ${target}`;
};
