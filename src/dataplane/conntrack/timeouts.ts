/** How long the kernel of this node keeps connections that carry no packet. */
import { readFileSync } from 'node:fs';

/** Of TCP connections that are open, and of UDP in which both sides have spoken. */
export type TimeoutSeconds = Readonly<Record<'tcp' | 'udp', number>>;

/** What the kernel gives connections itself; its own defaults where it does not say. */
export const readTimeouts = (): TimeoutSeconds => ({
  tcp: settingOf('nf_conntrack_tcp_timeout_established') ?? 432_000,
  udp: settingOf('nf_conntrack_udp_timeout_stream') ?? 120,
});

const settingOf = (name: string): number | undefined => {
  try {
    return Number(readFileSync(`/proc/sys/net/netfilter/${name}`, 'utf8')) || undefined;
  } catch {
    return undefined;
  }
};
