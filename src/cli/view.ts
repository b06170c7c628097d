/** The ClusterView of the objects that were read: the very input that the controller decides from. */
import { Config } from '../api/config.ts';
import type { ClusterView, TunnelView } from '../core/cluster/view.ts';
import {
  projectClusterInfo,
  projectClusterPolicy,
  projectGateway,
  projectNamespace,
  projectNode,
  projectPolicy,
  projectSettings,
  projectTunnel,
} from '../core/project/index.ts';
import { parseConfig } from '../runtime/config/parse.ts';
import type { ClusterContext, OwnObjects, ServedConfigMap, ServedObject } from './read.ts';

/** A view, and what the reader has to know about how it was made. */
export interface NotedView {
  readonly view: ClusterView;
  readonly notes: readonly string[];
}

/** Projects everything. Total: what cannot be read is a finding in the view, or a note. */
export const viewOf = (objects: OwnObjects, { nodes, namespaces, config }: ClusterContext): NotedView => {
  const { value, notes } = configOf(config);
  const seed = namespaces.find(({ metadata }) => metadata.name === 'kube-system')?.metadata.uid ?? 'sallyport';
  const view: ClusterView = {
    settings: projectSettings(value, seed),
    ranges: projectClusterInfo(objects.clusterInfo),
    nodes: nodes.map(projectNode),
    tunnels: objects.tunnels.map((tunnel) => projectTunnelAsRecorded(tunnel)),
    gateways: objects.gateways.map(projectGateway),
    policies: [
      ...objects.policies.map((policy) => projectPolicy(policy)),
      ...objects.clusterPolicies.map((policy) => projectClusterPolicy(policy)),
    ],
    namespaces: namespaces.map(projectNamespace),
  };
  return { view, notes };
};

/**
 * Whether an agent is silent is the controller's judgement, which it wrote into the phase: the clock of the reader may
 * be wrong by more than the limit.
 */
const projectTunnelAsRecorded = (object: ServedObject): TunnelView => {
  const tunnel = projectTunnel(object, 'fresh');
  return tunnel.recorded.phase === 'HeartbeatTimeout' ? { ...tunnel, heartbeat: 'stale' } : tunnel;
};

const configOf = (map: ServedConfigMap | undefined): { readonly value: Config; readonly notes: readonly string[] } => {
  const defaults = Config.parse({});
  const text = map?.data?.['config.yaml'];
  if (text === undefined) {
    return {
      value: defaults,
      notes: ['Cannot read the ConfigMap of the chart; this answer assumes the default configuration.'],
    };
  }
  const parsed = parseConfig(text, Config);
  if (parsed.ok) return { value: parsed.value, notes: [] };
  const [problem] = parsed.problems;
  const note = `The configuration is invalid (line ${problem?.line}: ${problem?.sentence}); this answer assumes the default one.`;
  return { value: defaults, notes: [note] };
};
