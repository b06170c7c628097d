/** How the electorate stands, as metrics: an electorate that waits for long cannot replace a voter that is lost. */
import type { ElectoratePlan } from '../../core/ownership/electorate.ts';
import type { Metrics } from '../../runtime/metrics/metrics.ts';
import type { MetricDefinition } from '../../runtime/process/metric-definitions.ts';

/** The gauges of the electorate. Names are an interface, as in metric-definitions.ts. */
export const electorateGauges = {
  generation: {
    name: 'sallyport_electorate_generation',
    help: 'How often the electorate has changed.',
    labels: [],
  },
  votes: {
    name: 'sallyport_electorate_votes',
    help: 'Nodes that vote, and the API server if it does.',
    labels: ['of'],
  },
  awaited: {
    name: 'sallyport_electorate_awaited_reports',
    help: 'Nodes whose reports the next change of the electorate waits for; 0 when none is to come.',
    labels: [],
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>;

/** Shows the last plan of the electorate at every scrape; 0 while there is none. Call it once. */
export const observeElectorate = (
  { instruments: { gauge } }: Pick<Metrics, 'instruments'>,
  last: () => ElectoratePlan | undefined,
): void => {
  gauge(electorateGauges.generation, (set) => {
    const { electorate } = last() ?? {};
    if (electorate !== undefined) set({}, electorate.generation);
  });
  gauge(electorateGauges.votes, (set) => {
    const { electorate } = last() ?? {};
    if (electorate === undefined) return;
    set({ of: 'nodes' }, electorate.voters.length);
    set({ of: 'api' }, electorate.hasApi ? 1 : 0);
  });
  gauge(electorateGauges.awaited, (set) => {
    const plan = last();
    if (plan !== undefined) set({}, plan.awaited.length);
  });
};
