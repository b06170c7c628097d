/** Addresses of tests. */
import { type Cidr, type Ip, parseCidr, parseIp } from '../ip/index.ts';

/** The address of a text; throws for one that is none. */
export const ip = (text: string): Ip => {
  const parsed = parseIp(text);
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.value;
};

/** The block of a text; throws for one that is none. */
export const cidr = (text: string): Cidr => {
  const parsed = parseCidr(text);
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.value;
};
