/** Reasons of the egress proxy: BCSEgress and BCSEgressController. */
import { failing, good, type ReasonDescription, refused, unknown } from './reason.ts';

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
    ['Programmed'],
    'The destination resolves to an address that no rule names and that is private, local or inside the cluster.',
    'Name the address in ips if it is meant.',
  ),
  ProxyLoop: failing(
    ['Programmed'],
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
  WorkloadRefused: failing(
    ['Ready'],
    'Kubernetes refused an object that the proxy needs.',
    'Read the message; a quota or policy of the namespace is the usual cause.',
  ),
  ScalingUnavailable: failing(
    ['Ready'],
    'The autoscaler has no figures, so the number of replicas does not change.',
    'Install the metrics server.',
  ),
} as const satisfies Record<string, ReasonDescription>;
