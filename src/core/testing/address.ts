/** Addresses of tests. */
import { type Ip, parseIp } from '../ip/index.ts';

/** The address of a text; throws for one that is none. */
export const ip = (text: string): Ip => {
  const parsed = parseIp(text);
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.value;
};
