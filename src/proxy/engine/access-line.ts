/**
 * AccessLine is one line of the access log: one per request of the HTTP proxy and one per connection of the others, when it
 * ends. Every engine writes the same fields, so a query written once works for both. Paths and headers are not in it: they
 * may hold secrets.
 */
import type { RefusalWord } from './engine.ts';

export interface AccessLine {
  /** When it began, in ISO 8601. */
  readonly time: string;
  /** `tcp` for a port of a rule, `http` for plain requests, `connect` for tunnels, `sni` for TLS that was led here by DNS. */
  readonly kind: 'tcp' | 'http' | 'connect' | 'sni';
  /** Id of the rule that let it through; empty when none did. */
  readonly rule: string;
  /** Address and port of the client. */
  readonly client: string;
  /** Host that was asked for, with its port if the client told it; empty for `tcp` and when it could not be read. */
  readonly host: string;
  /** Address and port that was connected to; empty when none was. */
  readonly upstream: string;
  /** Method of the request; empty without one. */
  readonly method: string;
  /** Status that the client got; 0 for connections. */
  readonly status: number;
  /** Towards the outside. */
  readonly bytesSent: number;
  /** From the outside. */
  readonly bytesReceived: number;
  readonly ms: number;
  /** Why it was not let through; empty when it was. */
  readonly refused: RefusalWord | '';
  /** The engine's own words about how it ended, for people. */
  readonly detail: string;
}
