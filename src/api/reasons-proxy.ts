/** Reasons of the egress proxy: BCSEgress and BCSEgressController. */
import { failing, good, happened, type ReasonDescription, refused, unknown } from './reason.ts';

/** Reasons by name; use them through reasons.ts. */
export const proxyReasons = {
  SourcePortTaken: refused(
    ['Accepted', 'Admission'],
    'An older BCSEgress on the same proxy has the source port.',
    'Choose another sourceport, or another proxy.',
  ),
  DomainTaken: refused(
    ['Accepted', 'Admission'],
    'An older BCSEgress has the domain name; a name can be published once per cluster.',
    'Use the rule of the other object, or leave the name out.',
  ),
  ClaimNotAllowed: refused(
    ['Accepted', 'Admission'],
    'The proxy does not let this namespace have the port, name or address.',
    'Ask the administrator of the proxy for an entry in spec.tenants.',
  ),
  NameReserved: refused(
    ['Accepted', 'Admission'],
    'The name belongs to the cluster: its domain, a search domain of pods, localhost, a reverse zone, or a name that the administrator reserves.',
    'Use a name outside the cluster.',
  ),
  NameNotAllowed: refused(
    ['Accepted', 'Admission', 'Published'],
    'The administrator of the proxy does not let its rules publish the name.',
    'Use the Service of the rule, or ask the administrator of the proxy to add the name to spec.allowedNames.',
  ),
  ProxyNotFound: failing(
    ['Accepted'],
    'The BCSEgressController does not exist. The operator makes only the default one by itself.',
    'Correct spec.controller, or ask an administrator to make the BCSEgressController.',
  ),
  ServiceNameTaken: failing(
    ['Published'],
    'The namespace has a Service of the name that the rule needs, which is not of the operator, or was changed to lead elsewhere.',
    'Give the rule another name, or remove the Service.',
  ),
  PortReserved: refused(
    ['Accepted', 'Admission'],
    'The proxy itself needs the source port.',
    'Choose a sourceport that the message does not name.',
  ),
  EngineCannot: refused(
    ['Accepted', 'Programmed'],
    'The engine of the proxy cannot do what the rule asks.',
    'Use the engine that the message names.',
  ),
  ConnectNotOffered: good(
    'Limited',
    'The engine nginx reaches TLS hosts where DNS leads clients to the proxy, and answers 400 to CONNECT (HTTPS_PROXY).',
    'Set spec.engine of the BCSEgressController to envoy, or lead clients to the proxy by DNS (transparent: true).',
  ),
  ClientsLimited: good(
    'Limited',
    'The engine serves the rules, and does not offer to their clients what the message lists.',
    'Where a client needs it, set spec.engine of the BCSEgressController to the other engine.',
  ),
  RulesLive: good('Programmed', 'Every ready replica of the proxy has the rules live.'),
  WaitingForReplicas: failing(
    ['Programmed'],
    'Some replicas of the proxy do not have this generation of the rules yet.',
    'Wait a moment; if it lasts, look at the pods that the message names.',
  ),
  ProxyOutOfContact: unknown('Programmed', 'No replica of the proxy reports.', 'Look at the pods of the proxy.'),
  ListenPortTaken: failing(
    ['Programmed'],
    'Another process in the proxy pod holds the source port.',
    'Choose another sourceport.',
  ),
  RuleRefused: failing(
    ['Programmed'],
    'The engine refused the rule; the others are live.',
    'Report the message; change the rule if it is wrong.',
  ),
  NameNotResolved: failing(
    ['Programmed'],
    'The destination does not resolve in the DNS outside the cluster.',
    'Correct the name, or the resolvers of the proxy.',
  ),
  AddressForbidden: failing(
    ['Accepted', 'Admission', 'Programmed'],
    'The destination is inside the cluster or local to its nodes, or its name resolves to such an address or a private one.',
    'Use an address outside the cluster, or ask the administrator of the proxy to open it in spec.allowedRanges.',
  ),
  ProxyLoop: failing(
    ['Accepted', 'Admission', 'Programmed'],
    'The destination leads back to the proxy itself.',
    'Use a name or address outside the cluster.',
  ),
  NamesPublished: good('Published', 'The names answer with the address of the proxy.'),
  NameNotAnswering: failing(
    ['Published'],
    'The cluster DNS does not answer with the address of the proxy yet.',
    'Wait a minute; if it lasts, look at CoreDNS.',
  ),
  DnsNotOurs: refused(
    ['Published'],
    'The DNS of the cluster has a hosts block that is not ours, so public names are not published.',
    'Use the Service name of the rule, or let the operator own the block.',
  ),
  ProxyReady: good('Ready', 'The proxy runs with at least minReplicas replicas.'),
  ReplicasNotReady: failing(['Ready'], 'Too few replicas of the proxy are ready.', 'Look at the pods of the proxy.'),
  PodUnschedulable: failing(
    ['Ready', 'Programmed'],
    'A pod of the proxy finds no node.',
    'Correct spec.selector or spec.resource of the BCSEgressController, or add nodes.',
  ),
  ImageNotPulled: failing(
    ['Ready', 'Programmed'],
    'The image of the proxy cannot be had.',
    'Correct spec.image of the BCSEgressController, or the pull secrets and images of the chart.',
  ),
  ContainerFailing: failing(
    ['Ready', 'Programmed'],
    'The container of the proxy cannot be started, or ends again and again.',
    'Look at the log and the events of the pod that the message names.',
  ),
  WorkloadRefused: failing(
    ['Ready', 'Programmed'],
    'Kubernetes refused an object that the proxy needs.',
    'Read the message; a quota or policy of the namespace is the usual cause.',
  ),
  ProxyNamespaceNotAllowed: refused(
    ['Ready'],
    'The operator may not run proxies in this namespace.',
    'Add the namespace to operator.proxyNamespaces of the chart, or use another namespace.',
  ),
  RulesServed: happened('Every ready replica of the proxy serves the rules now.'),
} as const satisfies Record<string, ReasonDescription>;
