/**
 * The webhooks as pure functions from a request and a view of the cluster to a verdict. The API server calls `/mutate`
 * first, then checks the schema, then calls `/validate`.
 */
import { EgressTunnelStatus } from '../../api/egress-tunnel.ts';
import { finalizers } from '../../api/names.ts';
import type { GatewayView, PolicyView } from '../../core/cluster/view.ts';
import { chooseGateway } from '../../core/gateways/choice.ts';
import { type ApiObject, projectClusterPolicy, projectGateway, projectPolicy } from '../../core/project/index.ts';
import type { JsonPatchOperation } from '../../runtime/kube/client.ts';
import type { AdmissionRequest, AdmissionVerdict } from '../../runtime/serve/admission-review.ts';
import { chooseDefaultEip } from './default-eip.ts';
import { gatewayDeletionRules, gatewayRules } from './gateway-rules.ts';
import { clusterInfoDeletionRules, type Marked, sliceRules, statusRules, tunnelRules } from './guard-rules.ts';
import { objectOf, oldObjectOf, type RequestedObject } from './object.ts';
import { policyRules } from './policy-rules.ts';
import { type AdmissionRule, judge } from './rule.ts';
import { type AdmissionView, lookupFor } from './view.ts';

/** One webhook. Pure: the same request and the same view give the same verdict. */
export type Judge = (request: AdmissionRequest, world: AdmissionView) => AdmissionVerdict;

const allow: AdmissionVerdict = { kind: 'allow' };

/** An object on its way out is only waiting for its finalizers, and nobody may be kept from taking them off. */
const isLeaving = (object: RequestedObject | undefined): boolean => object?.metadata.deletionTimestamp !== undefined;

const validate =
  <View>(project: (object: ApiObject) => View, rules: readonly AdmissionRule<View>[]): Judge =>
  (request, world) => {
    const [object, old] = [objectOf(request), oldObjectOf(request)];
    if (object === undefined || isLeaving(object)) return allow;
    return judge(rules, { view: project(object), old: old && project(old) }, world);
  };

const validateGateway = validate<GatewayView>(projectGateway, gatewayRules);

const gatewayValidation: Judge = (request, world) => {
  if (request.operation !== 'DELETE') return validateGateway(request, world);
  const old = oldObjectOf(request);
  if (old === undefined || isLeaving(old)) return allow;
  return judge(gatewayDeletionRules, { view: projectGateway(old), old: undefined }, world);
};

const gatewayDefaults: Judge = (request, world) => {
  const [object, old] = [objectOf(request), oldObjectOf(request)];
  if (object === undefined || isLeaving(object)) return allow;
  const view = projectGateway(object);
  return { kind: 'patch', operations: [...finalizerPatch(object), ...defaultEipPatch(view, old, world)] };
};

/** Adds our finalizer to those that the user has given. */
const finalizerPatch = ({ metadata }: RequestedObject): JsonPatchOperation[] => {
  const given = metadata.finalizers ?? [];
  if (given.includes(finalizers.gateway)) return [];
  return [{ op: 'add', path: '/metadata/finalizers', value: [...given, finalizers.gateway] }];
};

const defaultEipPatch = (
  { spec, problems }: GatewayView,
  old: RequestedObject | undefined,
  world: AdmissionView,
): JsonPatchOperation[] => {
  // A default that is wrong is for validation to refuse; to write another one over it would hide the mistake.
  const isWrong = problems.some(({ reason }) => reason !== 'NodePolicyUnknown');
  if (spec === undefined || isWrong) return [];
  const chosen = chooseDefaultEip({
    spec,
    old: (old && projectGateway(old).spec?.defaultEip) ?? { ipv4: undefined, ipv6: undefined },
    settings: world.settings,
    isTaken: (ip) => Iterator.from(world.policies.holding(ip)).some(() => true),
  });
  return (['ipv4', 'ipv6'] as const)
    .filter((family) => chosen[family] !== undefined && chosen[family] !== spec.defaultEip[family])
    .map((family) => ({ op: 'add', path: `/spec/ippools/${family}DefaultEIP`, value: chosen[family] }));
};

/** Writes the name of the default gateway into a policy that names none. Without a default, validation refuses. */
const policyDefaults =
  (project: (object: ApiObject) => PolicyView): Judge =>
  (request, world) => {
    const object = objectOf(request);
    if (object === undefined || isLeaving(object)) return allow;
    const policy = project(object);
    if (policy.spec === undefined || policy.spec.gatewayName !== '') return allow;
    const chosen = chooseGateway(policy, policy.spec, lookupFor([policy], world));
    if (!chosen.ok) return allow;
    return {
      kind: 'patch',
      operations: [{ op: 'add', path: '/spec/egressGatewayName', value: chosen.value.name }],
    };
  };

const clusterInfoValidation: Judge = ({ operation, name = '' }, world) =>
  operation === 'DELETE' ? judge(clusterInfoDeletionRules, { view: { name }, old: undefined }, world) : allow;

const sliceValidation: Judge = ({ name = '' }, world) => judge(sliceRules, { view: { name }, old: undefined }, world);

const statusValidation: Judge = ({ name = '' }, world) => judge(statusRules, { view: { name }, old: undefined }, world);

const markOf = ({ status = {} }: ApiObject): Marked => {
  const read = EgressTunnelStatus.safeParse(status);
  return { mark: (read.success && read.data.mark) || '' };
};

type ByResource = Readonly<Record<string, Judge>>;

/** The judges by path and then by resource. */
export const judges = {
  mutate: {
    egressgateways: gatewayDefaults,
    egresspolicies: policyDefaults(projectPolicy),
    egressclusterpolicies: policyDefaults(projectClusterPolicy),
  },
  validate: {
    egressgateways: gatewayValidation,
    egresspolicies: validate(projectPolicy, policyRules),
    egressclusterpolicies: validate(projectClusterPolicy, policyRules),
    egressclusterinfos: clusterInfoValidation,
    'egresstunnels/status': validate(markOf, tunnelRules),
    'egressgateways/status': statusValidation,
    'egresspolicies/status': statusValidation,
    'egressclusterpolicies/status': statusValidation,
    egressendpointslices: sliceValidation,
    egressclusterendpointslices: sliceValidation,
  },
} as const satisfies Record<string, ByResource>;

/** The judge of one path. A resource that nobody has rules about is allowed: somebody's configuration sends too much. */
export const judgeOf = (path: keyof typeof judges): Judge => {
  const byResource: ByResource = judges[path];
  return (request, world) => {
    const resource = [request.resource.resource, request.subResource].filter(Boolean).join('/');
    return Object.hasOwn(byResource, resource) ? (byResource[resource]?.(request, world) ?? allow) : allow;
  };
};
