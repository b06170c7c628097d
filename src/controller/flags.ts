/** The command line of the controller as values. */
import { EgressError } from '../api/error.ts';
import { type LogLevel, logLevels } from '../runtime/process/log.ts';
import type { ListenOptions } from '../runtime/serve/listen.ts';

/** Flags as they were written. */
export interface ControllerFlags {
  readonly config?: string;
  readonly kubeconfig?: string;
  readonly healthAddress: string;
  readonly webhookAddress: string;
  readonly webhookUrl?: string;
  readonly namespace?: string;
  readonly logLevel: string;
}

/** What the flags ask for. */
export interface ControllerOptions {
  /** Undefined: the defaults. */
  readonly configPath: string | undefined;
  /** Undefined: the pod's service account, or KUBECONFIG. */
  readonly kubeconfigPath: string | undefined;
  readonly health: ListenOptions;
  readonly webhook: ListenOptions;
  readonly webhookUrl: string | undefined;
  readonly namespace: string;
  readonly logLevel: LogLevel;
}

/** The flags and what they are when they are not given. */
export const controllerDefaults = {
  healthAddress: ':8080',
  webhookAddress: ':9443',
  namespace: 'sallyport',
  logLevel: 'info',
} as const;

/** Reads the flags; throws CONFIG_INVALID with one sentence that names the flag, the value and what is allowed. */
export const readFlags = (
  flags: ControllerFlags,
  env: { readonly POD_NAMESPACE?: string | undefined },
): ControllerOptions => ({
  configPath: flags.config,
  kubeconfigPath: flags.kubeconfig,
  health: listenOptions('--health-address', flags.healthAddress),
  webhook: listenOptions('--webhook-address', flags.webhookAddress),
  webhookUrl: flags.webhookUrl === undefined ? undefined : httpsUrl('--webhook-url', flags.webhookUrl),
  namespace: namespaceName(flags.namespace ?? (env.POD_NAMESPACE || controllerDefaults.namespace)),
  logLevel: logLevel(flags.logLevel),
});

const refuse = (flag: string, value: string, allowed: string): never => {
  throw new EgressError('CONFIG_INVALID', `${flag} is "${value}": allowed is ${allowed}`, { data: { flag, value } });
};

/** `:8080`, `127.0.0.1:8080`, `[::1]:8080` or `localhost:8080`. */
const listenOptions = (flag: string, text: string): ListenOptions => {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) {
    return refuse(flag, text, 'an address and a port from 0 to 65535 such as :8080, 127.0.0.1:8080 or [::1]:8080');
  }
  const host = match[1] ?? match[2] ?? '';
  return host === '' ? { port } : { host, port };
};

const httpsUrl = (flag: string, text: string): string =>
  URL.canParse(text) && new URL(text).protocol === 'https:'
    ? text
    : refuse(flag, text, 'a URL that begins with https://');

const namespaceName = (text: string): string =>
  /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text)
    ? text
    : refuse('--namespace', text, 'the name of a namespace: at most 63 lower-case letters, digits and "-"');

const logLevel = (text: string): LogLevel =>
  logLevels.find((level) => level === text) ?? refuse('--log-level', text, `one of ${logLevels.join(', ')}`);
