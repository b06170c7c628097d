/** Flags that several programs have, as values. Each throws CONFIG_INVALID with one sentence that says what is allowed. */
import { EgressError } from '../../api/error.ts';
import { type LogLevel, logLevels } from '../process/log.ts';
import type { ListenOptions } from '../serve/listen.ts';
import type { PageAuth } from '../serve/reader-units.ts';

/** Refuses the value of a flag. */
export const refuseFlag = (flag: string, value: string, allowed: string): never => {
  throw new EgressError('CONFIG_INVALID', `${flag} is "${value}": allowed is ${allowed}`, { data: { flag, value } });
};

/** `:8080`, `127.0.0.1:8080`, `[::1]:8080` or `localhost:8080`. */
export const listenFlag = (flag: string, text: string): ListenOptions => {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) {
    return refuseFlag(flag, text, 'an address and a port from 0 to 65535 such as :8080, 127.0.0.1:8080 or [::1]:8080');
  }
  const host = match[1] ?? match[2] ?? '';
  return host === '' ? { port } : { host, port };
};

/** One of logLevels. */
export const logLevelFlag = (text: string): LogLevel =>
  logLevels.find((level) => level === text) ?? refuseFlag('--log-level', text, `one of ${logLevels.join(', ')}`);

/** Who may read metrics and pages. */
export const pageAuthFlag = (text: string): PageAuth =>
  text === 'token' || text === 'none' ? text : refuseFlag('--page-auth', text, 'token, or none to let everybody read');

/** The name of a namespace. */
export const namespaceFlag = (text: string): string =>
  /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text)
    ? text
    : refuseFlag('--namespace', text, 'the name of a namespace: at most 63 lower-case letters, digits and "-"');

/** A domain name in lower case and without its last dot, such as cluster.local. */
export const domainName = (flag: string, text: string): string => {
  const name = text.toLowerCase().replace(/\.$/, '');
  return /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name)
    ? name
    : refuseFlag(flag, text, 'a domain name such as cluster.local');
};
