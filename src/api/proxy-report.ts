/**
 * ProxyReport is what one replica of a proxy tells about itself: `GET /report` on its health port. The operator reads the
 * reports of all replicas and is the only one that writes statuses.
 */
import { z } from 'zod';
import type { Immutable } from './immutable.ts';
import { isReason, type Reason } from './reasons.ts';

const count = z.number().min(0);

const RuleReport = z.object({
  /** `namespace/egress/rule`. */
  id: z.string(),
  /** Live: the engine was seen to serve it. Error: `reason` and `sentence` say why it is not served. */
  state: z.enum(['live', 'error']),
  reason: z.custom<Reason>((value) => typeof value === 'string' && isReason(value)).optional(),
  /** For people. */
  sentence: z.string().optional(),
  /** Open connections. */
  actives: count,
  /** The rest is counted since the engine started. */
  connections: count,
  bytesSent: count,
  bytesReceived: count,
  /** Addresses that the destination leads to now; empty for a host pattern and for a name that nobody asked for yet. */
  addresses: z.array(z.string()),
});

/** What `/report` answers, once the first rules were given to the engine; before that it answers 503. */
export const ProxyReport = z.object({
  engine: z.enum(['envoy', 'nginx']),
  /** Revision of the rule set that is in force. */
  revision: z.string(),
  /** `namespace/name` of a BCSEgress -> its generation that is served. One that is not served is not listed. */
  egresses: z.record(z.string(), z.int()),
  rules: z.array(RuleReport),
  /** Requests that no rule allows, by a short word for why, since the engine started. */
  refused: z.record(z.string(), count),
});
export type ProxyReport = Immutable<z.infer<typeof ProxyReport>>;
export type RuleReport = ProxyReport['rules'][number];
