/** What the last decision came to, as metrics. Durations, writes and conflicts are metrics of the runtime already. */
import type { PoolUsage } from '../../core/plan/gateway-plan.ts';
import type { Plan } from '../../core/plan/plan.ts';
import type { Metrics } from '../../runtime/metrics/metrics.ts';
import type { SetValue } from '../../runtime/process/instruments.ts';
import type { MetricDefinition } from '../../runtime/process/metric-definitions.ts';
import { verdictOf } from './policy-changes.ts';

/** The gauges of a plan. Names are an interface, as in metric-definitions.ts. */
export const planGauges = {
  policies: {
    name: 'sallyport_policies',
    help: 'Policies by the reason that says most about them.',
    labels: ['reason'],
  },
  tunnels: { name: 'sallyport_tunnels', help: 'Tunnels by phase.', labels: ['phase'] },
  poolAddresses: {
    name: 'sallyport_gateway_pool_addresses',
    help: 'Addresses in the pools of a gateway.',
    labels: ['gateway', 'family'],
  },
  poolFreeAddresses: {
    name: 'sallyport_gateway_pool_free_addresses',
    help: 'Addresses in the pools of a gateway that no policy uses.',
    labels: ['gateway', 'family'],
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>;

/** Shows the last plan at every scrape; nothing while there is none, as on a replica that does not lead. Call it once. */
export const observePlan = ({ instruments }: Pick<Metrics, 'instruments'>, lastPlan: () => Plan | undefined): void => {
  const { gauge } = instruments;
  gauge(planGauges.policies, (set) => {
    const reasons = lastPlan()?.policies.map((policy) => verdictOf(policy).reason) ?? [];
    for (const [reason, all] of Map.groupBy(reasons, (each) => each)) set({ reason }, all.length);
  });
  gauge(planGauges.tunnels, (set) => {
    const phases = lastPlan()?.tunnels.map(({ phase }) => phase) ?? [];
    for (const [phase, all] of Map.groupBy(phases, (each) => each)) set({ phase }, all.length);
  });
  const addresses = (set: SetValue, ipv4: keyof PoolUsage, ipv6: keyof PoolUsage): void => {
    for (const { name: gateway, usage } of lastPlan()?.gateways ?? []) {
      set({ gateway, family: 'ipv4' }, usage[ipv4]);
      set({ gateway, family: 'ipv6' }, usage[ipv6]);
    }
  };
  gauge(planGauges.poolAddresses, (set) => addresses(set, 'ipv4Total', 'ipv6Total'));
  gauge(planGauges.poolFreeAddresses, (set) => addresses(set, 'ipv4Free', 'ipv6Free'));
};
