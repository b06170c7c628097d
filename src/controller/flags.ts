/** The command line of the controller as values. */
import { listenFlag, logLevelFlag, namespaceFlag, pageAuthFlag, refuseFlag } from '../runtime/config/flag.ts';
import type { LogLevel } from '../runtime/process/log.ts';
import type { ListenOptions } from '../runtime/serve/listen.ts';
import type { PageAuth } from '../runtime/serve/reader-units.ts';

/** Flags as they were written. */
export interface ControllerFlags {
  readonly config?: string;
  readonly kubeconfig?: string;
  readonly healthAddress: string;
  readonly pageAuth: string;
  readonly webhookAddress: string;
  readonly webhookUrl?: string;
  readonly namespace?: string;
  readonly logLevel: string;
}

/** What the flags ask for. */
export interface ControllerSettings {
  /** Undefined: the defaults. */
  readonly configPath: string | undefined;
  /** Undefined: the pod's service account, or KUBECONFIG. */
  readonly kubeconfigPath: string | undefined;
  readonly health: ListenOptions;
  readonly pageAuth: PageAuth;
  readonly webhook: ListenOptions;
  readonly webhookUrl: string | undefined;
  readonly namespace: string;
  readonly logLevel: LogLevel;
}

/** The flags and what they are when they are not given. */
export const controllerDefaults = {
  healthAddress: ':8080',
  pageAuth: 'none',
  webhookAddress: ':9443',
  namespace: 'sallyport',
  logLevel: 'info',
} as const;

/** Reads the flags; throws CONFIG_INVALID with one sentence that names the flag, the value and what is allowed. */
export const readFlags = (
  flags: ControllerFlags,
  env: { readonly POD_NAMESPACE?: string | undefined },
): ControllerSettings => ({
  configPath: flags.config,
  kubeconfigPath: flags.kubeconfig,
  pageAuth: pageAuthFlag(flags.pageAuth),
  health: listenFlag('--health-address', flags.healthAddress),
  webhook: listenFlag('--webhook-address', flags.webhookAddress),
  webhookUrl: flags.webhookUrl === undefined ? undefined : httpsUrl('--webhook-url', flags.webhookUrl),
  namespace: namespaceFlag(flags.namespace ?? (env.POD_NAMESPACE || controllerDefaults.namespace)),
  logLevel: logLevelFlag(flags.logLevel),
});

const httpsUrl = (flag: string, text: string): string =>
  URL.canParse(text) && new URL(text).protocol === 'https:'
    ? text
    : refuseFlag(flag, text, 'a URL that begins with https://');
