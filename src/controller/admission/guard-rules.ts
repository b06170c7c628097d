/** The rules about objects that belong to the controller: cluster info, tunnels and slices. */
import { clusterInfoName } from '../../api/egress-cluster-info.ts';
import { annotations } from '../../api/names.ts';
import { finding } from '../../core/cluster/finding.ts';
import type { AdmissionRule } from './rule.ts';

/** An object by its name. */
export interface NamedObject {
  readonly name: string;
}

/** A tunnel by its mark; the empty text is none. */
export interface Marked {
  readonly mark: string;
}

/** The rule about the deletion of an EgressClusterInfo. That there is no second one is a rule of its schema. */
export const clusterInfoDeletionRules: readonly AdmissionRule<NamedObject>[] = [
  {
    name: 'cluster-info-kept',
    effect: 'refuse',
    about: ({ name }) => name,
    check: ({ view: { name } }) =>
      name === clusterInfoName
        ? { field: 'metadata.name', ...finding('ClusterInfoKept', `"${name}" cannot be deleted.`) }
        : undefined,
  },
];

/**
 * The rule about the status of an EgressTunnel. A mark never changes (seed 000), whoever asks. CEL refuses another
 * mark; only the old object shows that one was taken away.
 */
export const tunnelRules: readonly AdmissionRule<Marked>[] = [
  {
    name: 'tunnel-mark-kept',
    effect: 'refuse',
    about: ({ mark }) => mark,
    check: ({ view, old }) =>
      old === undefined || old.mark === '' || old.mark === view.mark
        ? undefined
        : {
            field: 'status.mark',
            reason: 'Forbidden',
            sentence: `${old.mark} must stay: it is made from the node name, and other nodes send by it. Delete the EgressTunnel to have it made anew.`,
          },
  },
];

/** The advice about statuses of gateways and policies, such as an older egctl writes to move an EIP. */
export const statusRules: readonly AdmissionRule<NamedObject>[] = [
  {
    name: 'status-by-hand',
    effect: 'warn',
    about: ({ name }) => name,
    check: () => ({
      field: 'status',
      sentence: `The controller writes the status, and undoes what is changed by hand. To move an EIP, use egctl vip move of Sallyport, or write EIP=NODE into the annotation ${annotations.moveEips} of the gateway.`,
    }),
  },
];

/** The advice about slices. The webhook is asked only about those that somebody else writes. */
export const sliceRules: readonly AdmissionRule<NamedObject>[] = [
  {
    name: 'slice-by-hand',
    effect: 'warn',
    about: ({ name }) => name,
    check: () => ({
      field: 'endpoints',
      sentence: 'The controller writes slices from policies and pods, and undoes what is changed by hand.',
    }),
  },
];
