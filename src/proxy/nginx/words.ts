/**
 * Words of nginx's configuration that are made from rules. Nothing that a user wrote reaches the file but host names and
 * addresses, and these only when every character is one that nginx reads as itself. Everything else is a number, or an
 * identifier made here.
 */
import { type Ip, isIpv6 } from '../../core/ip/index.ts';

/** A name of at least two labels whose last one is no number: nothing that nginx could take for an address or a variable. */
const NAME = /^(?=.{1,253}$)(?:[a-z0-9_-]{1,63}\.)+[a-z0-9_-]{0,62}[a-z_-][a-z0-9_-]{0,62}$/;

/** True for a host name that may stand in the configuration as it is. */
export const isPlainName = (name: string): boolean => NAME.test(name);

/** An address as part of a URL. */
export const hostOf = (ip: Ip): string => (isIpv6(ip) ? `[${ip}]` : ip);

/** A text in double quotes in which nginx replaces no variable. What it cannot hold is left out: it is for people to read. */
export const quoted = (text: string): string => `"${text.replaceAll(/[^ -~]|["\\${}]/g, '')}"`;

/** A path of our own; one with other characters is refused, since nginx would read them its own way. */
export const path = (text: string): string => {
  if (!/^[A-Za-z0-9/._-]+$/.test(text)) throw new Error(`nginx cannot use the path ${text}`);
  return text;
};

/** True for the id of a rule that may stand in the configuration and in a line of JSON as it is. */
export const isPlainId = (id: string): boolean => /^[A-Za-z0-9/._-]+$/.test(id);
