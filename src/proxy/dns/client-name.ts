/**
 * Names by which an engine asks for a rule on behalf of a client: `10.244.1.7.KEY.from.sallyport`, and for a wildcard the host
 * before the end. nginx has no other way to ask somebody for each connection; the answer is where the rule leads, or a
 * refusal when the client may not use it. Below a domain that cannot be outside, so no host is mistaken for one.
 */
import { type Ip, parseIp } from '../../core/ip/index.ts';

const END = '.from.sallyport';
/** Four numbers, or IPv6 with dashes for its colons; then the rule, then the host. */
const SHAPE = /^((?:\d+\.){3}\d+|[0-9a-f-]*-[0-9a-f-]*)\.(r[0-9a-f]{16})(?:\.(.+))?$/;

/** How engines write such a name; `client` may be a variable of theirs. */
export const clientNameOf = (client: string, key: string, host?: string): string =>
  `${client}.${key}${host === undefined ? '' : `.${host}`}${END}`;

export interface ClientQuestion {
  readonly client: Ip;
  readonly key: string;
  /** The host, where the rule is a wildcard. */
  readonly host: string | undefined;
}

/** True for names that can only be of this shape. */
export const isClientName = (name: string): boolean => name.endsWith(END);

/** What the name asks; undefined when it cannot be read. */
export const parseClientName = (name: string): ClientQuestion | undefined => {
  const [, client = '', key = '', host] = SHAPE.exec(name.slice(0, -END.length)) ?? [];
  const ip = parseIp(client.replaceAll('-', ':'));
  return ip.ok ? { client: ip.value, key, host } : undefined;
};
