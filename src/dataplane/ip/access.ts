/** How the network of a node is reached: by programs, and where it can be by a socket of this process. */
import type { Programs } from '../program.ts';
import type { ProxyListed } from './listing.ts';
import type { IndexOf, RequestMessage } from './messages.ts';

/** Without a socket programs do everything. */
export interface Access {
  readonly programs: Programs;
  readonly socket?: RouteSocket | undefined;
}

/** An open netlink socket. It never says why something failed: the program does it again and says why. */
export interface RouteSocket {
  readonly indexOf: IndexOf;
  /** Sends messages in order, before it returns. True: the kernel took every one of them. */
  send(messages: readonly RequestMessage[]): boolean;
  /** The IPv6 proxy entries; undefined when the kernel does not tell. */
  proxies(): readonly ProxyListed[] | undefined;
  /** Has a device join packets that arrive on it, or not. True: it is so now. */
  setGro(device: string, isOn: boolean): boolean;
  /** May be called twice. */
  close(): void;
}

/** Opens a socket in the network namespace of the caller; undefined when the kernel does not let us. */
export type OpenRouteSocket = () => RouteSocket | undefined;
