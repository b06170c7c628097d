/** The command line of the proxy as values. */
import { isIP } from 'node:net';
import { defaultClusterDomain } from '../core/proxy/reserved-names.ts';
import { proxyPorts } from '../core/proxy/served.ts';
import { domainName, listenFlag, logLevelFlag, pageAuthFlag, refuseFlag } from '../runtime/config/flag.ts';
import type { LogLevel } from '../runtime/process/log.ts';
import type { ListenOptions } from '../runtime/serve/listen.ts';
import type { PageAuth } from '../runtime/serve/reader-units.ts';

/** The engines there are. */
export const engineNames = ['envoy', 'nginx'] as const;
export type EngineName = (typeof engineNames)[number];

/** Flags as they were written. */
export interface ProxyFlags {
  readonly controller?: string;
  readonly engine: string;
  readonly engineBinary?: string;
  readonly kubeconfig?: string;
  readonly nameserver?: readonly string[];
  readonly reservedName?: readonly string[];
  readonly reportAddress: string;
  readonly pageAuth: string;
  readonly stateFolder: string;
  readonly logLevel: string;
}

/** What the flags ask for. */
export interface ProxyOptions {
  /** The BCSEgressController whose rules are served. */
  readonly controller: { readonly namespace: string; readonly name: string };
  readonly engine: EngineName;
  /** Path of the engine, or its name in PATH. */
  readonly program: string;
  /** Undefined: the pod's service account, or KUBECONFIG. */
  readonly kubeconfigPath: string | undefined;
  /** Resolvers outside the cluster. Empty: those of the pod. */
  readonly nameservers: readonly string[];
  /** Names of the cluster itself, which no rule may be about. */
  readonly reservedNames: readonly string[];
  readonly report: ListenOptions;
  readonly pageAuth: PageAuth;
  readonly stateFolder: string;
  readonly logLevel: LogLevel;
}

/** The flags and what they are when they are not given. */
export const proxyDefaults = {
  engine: 'envoy',
  reportAddress: `:${proxyPorts.report}`,
  pageAuth: 'none',
  stateFolder: '/run/sallyport',
  logLevel: 'info',
} as const;

/** Reads the flags; throws CONFIG_INVALID with one sentence that names the flag, the value and what is allowed. */
export const readProxyFlags = (flags: ProxyFlags): ProxyOptions => {
  const engine =
    engineNames.find((name) => name === flags.engine) ?? refuseFlag('--engine', flags.engine, engineNames.join(' or '));
  return {
    controller: controllerOf(flags.controller ?? ''),
    engine,
    program: flags.engineBinary ?? engine,
    kubeconfigPath: flags.kubeconfig,
    nameservers: (flags.nameserver ?? []).map(nameserverOf),
    reservedNames: (flags.reservedName ?? [defaultClusterDomain]).map((name) => domainName('--reserved-name', name)),
    pageAuth: pageAuthFlag(flags.pageAuth),
    report: listenFlag('--report-address', flags.reportAddress),
    stateFolder: flags.stateFolder.startsWith('/')
      ? flags.stateFolder
      : refuseFlag('--state-folder', flags.stateFolder, 'an absolute path'),
    logLevel: logLevelFlag(flags.logLevel),
  };
};

const controllerOf = (text: string): ProxyOptions['controller'] => {
  const [, namespace, name] = /^([a-z0-9][-a-z0-9]{0,62})\/([a-z0-9][-.a-z0-9]{0,252})$/.exec(text) ?? [];
  return namespace === undefined || name === undefined
    ? refuseFlag('--controller', text, 'namespace/name of the BCSEgressController whose rules are served')
    : { namespace, name };
};

const nameserverOf = (text: string): string =>
  isIP(text) === 0 ? refuseFlag('--nameserver', text, 'an IP address; give the flag several times for several') : text;
