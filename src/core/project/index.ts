/**
 * From API objects to the ClusterView. Every function here is total: an object that cannot be read becomes a view with
 * `problems`, never an exception, and never touches another object. Read ../view.ts first; it has the result types.
 * Nothing is decided here.
 */
export { type ApiObject, type Metadata, type Output, readStatus, type Schema } from './api-object.ts';
export { electorateOf, projectClusterInfo, projectElectorate, projectSettings } from './cluster.ts';
export { projectGateway } from './gateway.ts';
export {
  type NamespaceObject,
  type NodeObject,
  type PodObject,
  projectNamespace,
  projectNode,
  projectPod,
} from './node.ts';
export { projectClusterPolicy, projectPolicy } from './policy.ts';
export { projectRoster } from './roster.ts';
export { projectTunnel } from './tunnel.ts';
