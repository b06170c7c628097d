/**
 * The access log as Envoy writes it: the fields of AccessLine, in JSON. What Envoy cannot say itself, why a request was not
 * let through when no route did it, is put in when the line is read; lines of what went well are passed on as they are.
 */

import type { AccessLine } from '../access-line.ts';
import { extension, type Message } from './message.ts';
import { METADATA } from './routes.ts';

type Fields = Partial<Readonly<Record<keyof AccessLine, string | number>>>;

/**
 * A field with one operator is left out when that has no value; with a second one that never has a value (no TLS ends here) it gives an
 * empty text. Only what is empty when all goes well needs that: other lines are completed when they are read.
 */
const orEmpty = (operator: string): string => `${operator}%DOWNSTREAM_TLS_VERSION%`;

const common: Fields = {
  time: '%START_TIME%',
  client: '%DOWNSTREAM_REMOTE_ADDRESS%',
  upstream: '%UPSTREAM_REMOTE_ADDRESS%',
  rule: '%UPSTREAM_CLUSTER%',
  bytesSent: '%UPSTREAM_WIRE_BYTES_SENT%',
  bytesReceived: '%UPSTREAM_WIRE_BYTES_RECEIVED%',
  ms: '%DURATION%',
};

const connection: Fields = {
  ...common,
  method: '',
  status: 0,
  refused: '',
  detail: '%RESPONSE_FLAGS% %CONNECTION_TERMINATION_DETAILS% %UPSTREAM_TRANSPORT_FAILURE_REASON%',
};

const logTo = (fields: Fields): Message[] => [
  extension('envoy.access_loggers.stdout', 'envoy.extensions.access_loggers.stream.v3.StdoutAccessLog', {
    log_format: { omit_empty_values: true, json_format: sorted(fields) },
  }),
];

const sorted = (fields: Fields): Message =>
  Object.fromEntries(Object.entries(fields).toSorted(([a], [b]) => (a < b ? -1 : 1)));

/** Of a TCP rule. */
export const tcpLog: Message[] = logTo({ ...connection, kind: 'tcp', host: '' });
/** Of TLS that is forwarded by its server name. */
export const sniLog: Message[] = logTo({ ...connection, kind: 'sni', host: '%REQUESTED_SERVER_NAME%' });
/** Of TLS, or what should be, that no rule allows. */
export const sniRefusedLog: Message[] = logTo({
  ...connection,
  kind: 'sni',
  host: '%REQUESTED_SERVER_NAME%',
  rule: '',
  refused: 'not-allowed',
});
/** Of the HTTP proxy. */
export const httpLog: Message[] = logTo({
  ...common,
  kind: `%METADATA(ROUTE:${METADATA}:kind)%`,
  host: '%REQ(:AUTHORITY)%',
  method: '%REQ(:METHOD)%',
  status: '%RESPONSE_CODE%',
  refused: orEmpty(`%METADATA(ROUTE:${METADATA}:refused)%`),
  detail: '%RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%',
});
