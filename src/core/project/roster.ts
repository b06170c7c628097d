/** Roster from an EgressGateway: what the agents of gateway nodes need to know of it. */
import { EgressGatewayStatus } from '../../api/egress-gateway.ts';
import type { Roster } from '../ownership/planned.ts';
import { type ApiObject, readStatus } from './api-object.ts';
import { projectGateway } from './gateway.ts';

/** The roster of a gateway; undefined for one whose spec cannot be read. */
export const projectRoster = (object: ApiObject): Roster | undefined => {
  const { name, spec } = projectGateway(object);
  if (spec === undefined) return undefined;
  const nodes = (readStatus(EgressGatewayStatus, object)?.nodeList ?? []).map((node) => node.name);
  return {
    name,
    pools: spec.pools,
    nodes: nodes.filter((node) => node !== undefined).toSorted(),
    keepsConnections: spec.keepsConnections,
  };
};
