/** The command line of the agent as values. */
import { listenFlag, logLevelFlag, namespaceFlag, pageAuthFlag, refuseFlag } from '../runtime/config/flag.ts';
import type { LogLevel } from '../runtime/process/log.ts';
import type { ListenOptions } from '../runtime/serve/listen.ts';
import type { PageAuth } from '../runtime/serve/reader-units.ts';

/** Flags as they were written. */
export interface AgentFlags {
  readonly nodeName?: string;
  readonly namespace?: string;
  readonly config?: string;
  readonly kubeconfig?: string;
  readonly healthAddress: string;
  readonly pageAuth: string;
  readonly stateFolder: string;
  readonly sysctlRoot: string;
  readonly logLevel: string;
  readonly clean?: true;
}

/** What the flags ask for. */
export interface AgentOptions {
  readonly node: string;
  /** Where the Secret and the Lease of owners are. */
  readonly namespace: string;
  /** Undefined: the defaults. */
  readonly configPath: string | undefined;
  /** Undefined: the pod's service account, or KUBECONFIG. */
  readonly kubeconfigPath: string | undefined;
  readonly health: ListenOptions;
  readonly pageAuth: PageAuth;
  readonly stateFolder: string;
  readonly sysctlRoot: string;
  readonly logLevel: LogLevel;
}

/** The flags and what they are when they are not given. */
export const agentDefaults = {
  namespace: 'sallyport',
  healthAddress: ':8081',
  pageAuth: 'none',
  stateFolder: '/run/sallyport',
  sysctlRoot: '/proc/sys',
  logLevel: 'info',
} as const;

/** Reads the flags; throws CONFIG_INVALID with one sentence that names the flag, the value and what is allowed. */
export const readAgentFlags = (
  flags: AgentFlags,
  env: { readonly NODE_NAME?: string | undefined; readonly POD_NAMESPACE?: string | undefined },
): AgentOptions => ({
  // Cleaning up needs no name: it looks only at the kernel it runs on.
  node: nodeName(flags.nodeName ?? env.NODE_NAME ?? '', flags.clean === true),
  namespace: namespaceFlag(flags.namespace ?? (env.POD_NAMESPACE || agentDefaults.namespace)),
  configPath: flags.config,
  kubeconfigPath: flags.kubeconfig,
  pageAuth: pageAuthFlag(flags.pageAuth),
  health: listenFlag('--health-address', flags.healthAddress),
  stateFolder: absolute('--state-folder', flags.stateFolder),
  sysctlRoot: absolute('--sysctl-root', flags.sysctlRoot),
  logLevel: logLevelFlag(flags.logLevel),
});

const nodeName = (text: string, mayBeAbsent: boolean): string =>
  (mayBeAbsent && text === '') || /^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/.test(text)
    ? text
    : refuseFlag('--node-name', text, 'the name of the Node that the agent runs on; NODE_NAME sets it too');

const absolute = (flag: string, text: string): string =>
  text.startsWith('/') ? text : refuseFlag(flag, text, 'an absolute path');
