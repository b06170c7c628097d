/** The rights that the chart gives, as a table. */
import { z } from 'zod';
import { release } from '../../lab/install.ts';
import type { Rendered } from './helm.ts';

const Rule = z.object({
  apiGroups: z.array(z.string()).default(['']),
  /** Paths of pages, for rules about no resource. */
  nonResourceURLs: z.array(z.string()).default([]),
  resources: z.array(z.string()).default([]),
  resourceNames: z.array(z.string()).default([]),
  verbs: z.array(z.string()),
});
const Role = z.looseObject({ rules: z.array(Rule) });

/** One line per resource: who, where, what, which objects, verbs. */
export const rightsIn = (objects: readonly Rendered[]): string[] =>
  objects
    .filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role')
    .flatMap((role) =>
      Role.parse(role).rules.flatMap(({ apiGroups, nonResourceURLs, resources, resourceNames, verbs }) =>
        apiGroups.flatMap((group) =>
          [...resources, ...nonResourceURLs].map((resource) => {
            const { namespace } = role.metadata;
            const scope =
              role.kind === 'ClusterRole'
                ? 'cluster'
                : namespace === release.namespace
                  ? 'own namespace'
                  : `${namespace}`;
            const what = group === '' ? resource : `${resource}.${group}`;
            const only = resourceNames.length === 0 ? '' : ` "${resourceNames.join('", "')}"`;
            return `${role.metadata.name} | ${scope} | ${what}${only} | ${verbs.join(' ')}`;
          }),
        ),
      ),
    )
    .toSorted();

/** The rights as a table. A new line here needs a reason in the template of the role. */
export const expectedRights: readonly string[] = [
  'sallyport-agent | cluster | egressclusterinfos.egressgateway.spidernet.io | list watch',
  'sallyport-agent | cluster | egressclusterpolicies.egressgateway.spidernet.io | list watch',
  'sallyport-agent | cluster | egressgateways.egressgateway.spidernet.io | list watch',
  'sallyport-agent | cluster | egresspolicies.egressgateway.spidernet.io | list watch',
  'sallyport-agent | cluster | egresstunnels.egressgateway.spidernet.io | list watch',
  'sallyport-agent | cluster | egresstunnels/status.egressgateway.spidernet.io | patch',
  'sallyport-agent | cluster | events.events.k8s.io | create patch',
  'sallyport-agent | cluster | namespaces | list watch',
  'sallyport-agent | cluster | nodes | list watch',
  'sallyport-agent | cluster | pods | list watch',
  'sallyport-agent | own namespace | leases.coordination.k8s.io "sallyport-ownership" | get update',
  'sallyport-agent | own namespace | secrets "sallyport-heartbeat" | list watch',
  'sallyport-controller | cluster | customresourcedefinitions.apiextensions.k8s.io "ippools.crd.projectcalico.org" | list watch',
  'sallyport-controller | cluster | egressclusterendpointslices.egressgateway.spidernet.io | list watch create patch delete',
  'sallyport-controller | cluster | egressclusterinfos.egressgateway.spidernet.io | get list watch create patch',
  'sallyport-controller | cluster | egressclusterinfos/status.egressgateway.spidernet.io | patch',
  'sallyport-controller | cluster | egressclusterpolicies.egressgateway.spidernet.io | list watch',
  'sallyport-controller | cluster | egressclusterpolicies/finalizers.egressgateway.spidernet.io | update',
  'sallyport-controller | cluster | egressclusterpolicies/status.egressgateway.spidernet.io | patch',
  'sallyport-controller | cluster | egressendpointslices.egressgateway.spidernet.io | list watch create patch delete',
  'sallyport-controller | cluster | egressgateways.egressgateway.spidernet.io | list watch patch',
  'sallyport-controller | cluster | egressgateways/status.egressgateway.spidernet.io | patch',
  'sallyport-controller | cluster | egresspolicies.egressgateway.spidernet.io | list watch',
  'sallyport-controller | cluster | egresspolicies/finalizers.egressgateway.spidernet.io | update',
  'sallyport-controller | cluster | egresspolicies/status.egressgateway.spidernet.io | patch',
  'sallyport-controller | cluster | egresstunnels.egressgateway.spidernet.io | list watch create patch delete',
  'sallyport-controller | cluster | egresstunnels/status.egressgateway.spidernet.io | patch',
  'sallyport-controller | cluster | events.events.k8s.io | create patch',
  'sallyport-controller | cluster | ippools.crd.projectcalico.org | list watch',
  'sallyport-controller | cluster | mutatingwebhookconfigurations.admissionregistration.k8s.io "sallyport" | get patch',
  'sallyport-controller | cluster | namespaces | list watch',
  'sallyport-controller | cluster | nodes | list watch',
  'sallyport-controller | cluster | nodes | patch',
  'sallyport-controller | cluster | pods | list watch',
  'sallyport-controller | cluster | servicecidrs.networking.k8s.io | list watch',
  'sallyport-controller | cluster | validatingwebhookconfigurations.admissionregistration.k8s.io "sallyport" | get patch',
  'sallyport-controller | own namespace | leases.coordination.k8s.io "sallyport-controller" | get update',
  'sallyport-controller | own namespace | leases.coordination.k8s.io "sallyport-ownership" | list watch',
  'sallyport-controller | own namespace | leases.coordination.k8s.io | create',
  'sallyport-controller | own namespace | secrets "sallyport-heartbeat" | list watch update',
  'sallyport-controller | own namespace | secrets "sallyport-webhook" | get update',
  'sallyport-controller | own namespace | secrets | create',
  'sallyport-controller-api-servers | default | endpointslices.discovery.k8s.io | list watch',
  'sallyport-operator | cluster | /report | get',
  'sallyport-operator | cluster | bcsegresscontrollers.bkbcs.tencent.com | list watch',
  'sallyport-operator | cluster | bcsegresscontrollers/finalizers.bkbcs.tencent.com | update',
  'sallyport-operator | cluster | bcsegresscontrollers/status.bkbcs.tencent.com | patch',
  'sallyport-operator | cluster | bcsegresses.bkbcs.tencent.com | list watch patch',
  'sallyport-operator | cluster | bcsegresses/finalizers.bkbcs.tencent.com | update',
  'sallyport-operator | cluster | bcsegresses/status.bkbcs.tencent.com | patch',
  'sallyport-operator | cluster | egressclusterinfos.egressgateway.spidernet.io | list watch',
  'sallyport-operator | cluster | endpointslices.discovery.k8s.io | list watch create patch delete',
  'sallyport-operator | cluster | events.events.k8s.io | create patch',
  'sallyport-operator | cluster | namespaces | list watch',
  'sallyport-operator | cluster | services | get list watch create patch delete',
  'sallyport-operator | cluster | validatingwebhookconfigurations.admissionregistration.k8s.io "sallyport-operator" | get patch',
  'sallyport-operator | own namespace | leases.coordination.k8s.io "sallyport-operator" | get update',
  'sallyport-operator | own namespace | leases.coordination.k8s.io | create',
  'sallyport-operator | own namespace | secrets "sallyport-operator-webhook" | get update',
  'sallyport-operator | own namespace | secrets | create',
  'sallyport-operator-dns | kube-system | configmaps "coredns" | list watch patch',
  'sallyport-operator-proxies | bcs-system | bcsegresscontrollers.bkbcs.tencent.com | create patch delete',
  'sallyport-operator-proxies | bcs-system | deployments.apps | get list watch create patch delete',
  'sallyport-operator-proxies | bcs-system | horizontalpodautoscalers.autoscaling | get list watch create patch delete',
  'sallyport-operator-proxies | bcs-system | networkpolicies.networking.k8s.io | get list watch create patch delete',
  'sallyport-operator-proxies | bcs-system | poddisruptionbudgets.policy | get list watch create patch delete',
  'sallyport-operator-proxies | bcs-system | pods | list watch',
  'sallyport-page-auth | cluster | subjectaccessreviews.authorization.k8s.io | create',
  'sallyport-page-auth | cluster | tokenreviews.authentication.k8s.io | create',
  'sallyport-proxy | cluster | bcsegresscontrollers.bkbcs.tencent.com | list watch',
  'sallyport-proxy | cluster | bcsegresses.bkbcs.tencent.com | list watch',
  'sallyport-proxy | cluster | egressclusterinfos.egressgateway.spidernet.io | list watch',
  'sallyport-proxy | cluster | namespaces | list watch',
  'sallyport-proxy | cluster | pods | list watch',
  'sallyport-reader | cluster | /kernel | get',
  'sallyport-reader | cluster | /metrics | get',
  'sallyport-reader | cluster | /report | get',
  'sallyport-removal | cluster | nodes | list',
  'sallyport-removal | own namespace | daemonsets.apps "sallyport-agent" | get',
  'sallyport-removal | own namespace | pods | list',
];
