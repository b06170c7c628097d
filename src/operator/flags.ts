/** The command line of the operator as values. */
import { isIP } from 'node:net';
import { BCSEgressControllerSpec } from '../api/bcs-egress-controller.ts';
import { defaultClusterDomain } from '../core/proxy/reserved-names.ts';
import { domainName, listenFlag, logLevelFlag, pageAuthFlag, refuseFlag } from '../runtime/config/flag.ts';
import type { LogLevel } from '../runtime/process/log.ts';
import type { ListenOptions } from '../runtime/serve/listen.ts';
import type { PageAuth } from '../runtime/serve/reader-units.ts';

/** Flags as they were written. */
export interface OperatorFlags {
  readonly kubeconfig?: string;
  readonly healthAddress: string;
  readonly pageAuth: string;
  readonly webhookAddress: string;
  readonly webhookUrl?: string;
  readonly namespace?: string;
  readonly proxyNamespace?: readonly string[];
  readonly defaultProxy?: string;
  readonly defaultProxyName: string;
  readonly clusterDomain: string;
  readonly reservedName?: readonly string[];
  readonly envoyImage: string;
  readonly nginxImage: string;
  readonly imagePullPolicy?: string;
  readonly imagePullSecret?: readonly string[];
  readonly proxyPageAuth: string;
  readonly reportTokenFile?: string;
  readonly proxyServiceAccount: string;
  readonly nameserver?: readonly string[];
  readonly dns: string;
  readonly dnsConfigMap: string;
  readonly dnsServer?: readonly string[];
  readonly logLevel: string;
}

/** What the flags ask for. */
export interface OperatorOptions {
  /** Undefined: the pod's service account, or KUBECONFIG. */
  readonly kubeconfigPath: string | undefined;
  readonly health: ListenOptions;
  readonly pageAuth: PageAuth;
  readonly webhook: ListenOptions;
  readonly webhookUrl: string | undefined;
  readonly namespace: string;
  readonly proxyNamespaces: readonly string[];
  /** Undefined: no BCSEgressController is made by itself. */
  readonly defaultProxy: { readonly key: string; readonly spec: object } | undefined;
  readonly reservedNames: readonly string[];
  readonly images: { readonly envoy: string; readonly nginx: string };
  readonly imagePullPolicy: string | undefined;
  readonly imagePullSecrets: readonly string[];
  /** What proxies are started with. */
  readonly proxyPageAuth: PageAuth;
  /** Undefined: reports are read without a token. */
  readonly reportTokenFile: string | undefined;
  readonly serviceAccount: string;
  readonly nameservers: readonly string[];
  /** Undefined: names are not published. */
  readonly dns: DnsOptions | undefined;
  readonly logLevel: LogLevel;
}

export interface DnsOptions {
  readonly configMap: { readonly namespace: string; readonly name: string };
  /** Empty: the resolvers of the pod, which are those of the cluster. */
  readonly servers: readonly string[];
}

/** The flags and what they are when they are not given. */
export const operatorDefaults = {
  healthAddress: ':8080',
  pageAuth: 'none',
  webhookAddress: ':9443',
  namespace: 'sallyport',
  proxyNamespace: 'bcs-system',
  defaultProxyName: 'bcs-system/egress-controller',
  clusterDomain: defaultClusterDomain,
  envoyImage: 'sallyport-proxy-envoy',
  nginxImage: 'sallyport-proxy-nginx',
  proxyPageAuth: 'none',
  proxyServiceAccount: 'sallyport-proxy',
  dns: 'coredns',
  dnsConfigMap: 'kube-system/coredns',
  logLevel: 'info',
} as const;

/** Reads the flags; throws CONFIG_INVALID with one sentence that names the flag, the value and what is allowed. */
export const readOperatorFlags = (
  flags: OperatorFlags,
  env: { readonly POD_NAMESPACE?: string | undefined },
): OperatorOptions => ({
  kubeconfigPath: flags.kubeconfig,
  pageAuth: pageAuthFlag(flags.pageAuth),
  health: listenFlag('--health-address', flags.healthAddress),
  webhook: listenFlag('--webhook-address', flags.webhookAddress),
  webhookUrl: flags.webhookUrl === undefined ? undefined : httpsUrl(flags.webhookUrl),
  namespace: namespaceName('--namespace', flags.namespace ?? (env.POD_NAMESPACE || operatorDefaults.namespace)),
  proxyNamespaces: (flags.proxyNamespace ?? [operatorDefaults.proxyNamespace]).map((name) =>
    namespaceName('--proxy-namespace', name),
  ),
  defaultProxy: defaultProxyFlags(flags),
  reservedNames: [
    domainName('--cluster-domain', flags.clusterDomain),
    ...(flags.reservedName ?? []).map((name) => domainName('--reserved-name', name)),
  ],
  images: { envoy: flags.envoyImage, nginx: flags.nginxImage },
  imagePullPolicy: flags.imagePullPolicy || undefined,
  imagePullSecrets: flags.imagePullSecret ?? [],
  proxyPageAuth: pageAuthFlag(flags.proxyPageAuth),
  reportTokenFile: flags.reportTokenFile,
  serviceAccount: flags.proxyServiceAccount,
  nameservers: (flags.nameserver ?? []).map((text) => address('--nameserver', text)),
  dns: dnsFlags(flags),
  logLevel: logLevelFlag(flags.logLevel),
});

const dnsFlags = ({ dns, dnsConfigMap, dnsServer = [] }: OperatorFlags): DnsOptions | undefined => {
  if (dns === 'none') return undefined;
  if (dns !== 'coredns') return refuseFlag('--dns', dns, 'coredns, or none to publish no names');
  const [, namespace, name] = /^([a-z0-9][-a-z0-9]*)\/([a-z0-9][-.a-z0-9]*)$/.exec(dnsConfigMap) ?? [];
  if (namespace === undefined || name === undefined) {
    return refuseFlag('--dns-config-map', dnsConfigMap, 'namespace/name of the ConfigMap with the Corefile');
  }
  return { configMap: { namespace, name }, servers: dnsServer.map(serverAddress) };
};

const defaultProxyFlags = ({ defaultProxyName, defaultProxy }: OperatorFlags): OperatorOptions['defaultProxy'] => {
  const spec = specFlag(defaultProxy ?? '{}');
  if (defaultProxyName === 'none') return undefined;
  return /^[a-z0-9][-a-z0-9]{0,62}\/[a-z0-9][-.a-z0-9]{0,252}$/.test(defaultProxyName)
    ? { key: defaultProxyName, spec }
    : refuseFlag('--default-proxy-name', defaultProxyName, 'namespace/name of a BCSEgressController, or none');
};

const specFlag = (text: string): object => {
  try {
    const spec: unknown = JSON.parse(text);
    const judged = BCSEgressControllerSpec.safeParse(spec);
    if (judged.success && typeof spec === 'object' && spec !== null) return spec;
  } catch {
    // The sentence below says what is allowed.
  }
  return refuseFlag('--default-proxy', text, 'the spec of a BCSEgressController as JSON, such as {"minReplicas":2}');
};

const address = (flag: string, text: string): string =>
  isIP(text) === 0 ? refuseFlag(flag, text, 'an IP address') : text;

/** An address, or an IPv4 address with a port. */
const serverAddress = (text: string): string =>
  isIP(text.replace(/:\d{1,5}$/, '')) === 4 || isIP(text) !== 0
    ? text
    : refuseFlag('--dns-server', text, 'an IP address, or an IPv4 address and a port such as 10.96.0.10:53');

const httpsUrl = (text: string): string =>
  URL.canParse(text) && new URL(text).protocol === 'https:'
    ? text
    : refuseFlag('--webhook-url', text, 'a URL that begins with https://');

const namespaceName = (flag: string, text: string): string =>
  /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text)
    ? text
    : refuseFlag(flag, text, 'the name of a namespace: at most 63 lower-case letters, digits and "-"');
