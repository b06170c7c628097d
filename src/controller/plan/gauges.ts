/** What the last decision came to, as metrics. Durations, writes and conflicts are metrics of the runtime already. */
import type { PoolUsage } from '../../core/gateway-plan.ts';
import type { Plan } from '../../core/plan.ts';
import { verdictOf } from './policy-changes.ts';

interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The gauges in the text format of Prometheus; empty while there is no plan, as on a replica that does not lead. */
export const gaugeText = (plan: Plan | undefined): string => {
  if (plan === undefined) return '';
  const { policies, gateways, tunnels } = plan;
  const addresses = (ipv4: keyof PoolUsage, ipv6: keyof PoolUsage): Sample[] =>
    gateways.flatMap(({ name: gateway, usage }) => [
      { labels: { gateway, family: 'ipv4' }, value: usage[ipv4] },
      { labels: { gateway, family: 'ipv6' }, value: usage[ipv6] },
    ]);
  return [
    gauge(
      'sallyport_policies',
      'Policies by the reason that says most about them.',
      counted(
        'reason',
        policies.map((policy) => verdictOf(policy).reason),
      ),
    ),
    gauge(
      'sallyport_tunnels',
      'Tunnels by phase.',
      counted(
        'phase',
        tunnels.map(({ phase }) => phase),
      ),
    ),
    gauge(
      'sallyport_gateway_pool_addresses',
      'Addresses in the pools of a gateway.',
      addresses('ipv4Total', 'ipv6Total'),
    ),
    gauge(
      'sallyport_gateway_pool_free_addresses',
      'Addresses in the pools of a gateway that no policy uses.',
      addresses('ipv4Free', 'ipv6Free'),
    ),
  ].join('');
};

const counted = (label: string, values: readonly string[]): Sample[] =>
  [...Map.groupBy(values, (value) => value)].map(([value, all]) => ({ labels: { [label]: value }, value: all.length }));

const gauge = (name: `sallyport_${string}`, help: string, samples: readonly Sample[]): string =>
  [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} gauge`,
    // Names of objects and reasons hold neither quotes nor backslashes, so nothing has to be escaped.
    ...samples.map(({ labels, value }) => {
      const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
      return `${name}{${pairs.join(',')}} ${value}`;
    }),
    '',
  ].join('\n');
