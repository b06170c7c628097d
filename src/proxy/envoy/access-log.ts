/**
 * The access log as Envoy writes it: the fields of AccessLine, in JSON. What Envoy cannot say itself, why a request was not
 * let through when no route did it, is put in when the line is read; lines of what went well are passed on as they are.
 */

import type { AccessLine } from '../engine/access-line.ts';
import { type EnvoyMessage, extension } from './message.ts';

type AccessFields = Partial<Readonly<Record<keyof AccessLine, string | number>>>;

const common: AccessFields = {
  time: '%START_TIME%',
  client: '%DOWNSTREAM_REMOTE_ADDRESS%',
  upstream: '%UPSTREAM_REMOTE_ADDRESS%',
  rule: '%UPSTREAM_CLUSTER%',
  bytesSent: '%UPSTREAM_WIRE_BYTES_SENT%',
  bytesReceived: '%UPSTREAM_WIRE_BYTES_RECEIVED%',
  ms: '%DURATION%',
};

const connection: AccessFields = {
  ...common,
  method: '',
  status: 0,
  refused: '',
  detail:
    '%RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% %UPSTREAM_TRANSPORT_FAILURE_REASON%',
};

const fileLog = (path: string, format: EnvoyMessage): EnvoyMessage[] => [
  extension('envoy.access_loggers.file', 'envoy.extensions.access_loggers.file.v3.FileAccessLog', {
    path,
    log_format: format,
  }),
];

const jsonTo = (path: string, fields: AccessFields): EnvoyMessage[] =>
  fileLog(path, { omit_empty_values: true, json_format: sorted(fields) });

/**
 * The same as text that happens to be JSON, which costs Envoy less. A value that is not there is `-`, and what a client sent
 * is not escaped. It stands last: where anything went wrong the line is put right when it is read, and what went well has a
 * host that a rule names, in characters of a name. Whether it went well is told behind the time, always at the same place.
 */
const textTo = (path: string, { time = '', detail = '', host = '', ...others }: AccessFields): EnvoyMessage[] => {
  const text = Object.entries({ time, detail, ...sorted(others), host }).map(([name, value]) => {
    const isNumber = typeof value === 'number' || numeric.has(String(value));
    return `"${name}":${isNumber ? value : `"${value}"`}`;
  });
  return fileLog(path, { text_format_source: { inline_string: `{${text.join(',')}}\n` } });
};
const numeric: ReadonlySet<string> = new Set([
  '%RESPONSE_CODE%',
  '%UPSTREAM_WIRE_BYTES_SENT%',
  '%UPSTREAM_WIRE_BYTES_RECEIVED%',
  '%DURATION%',
]);

const sorted = (fields: AccessFields): EnvoyMessage =>
  Object.fromEntries(Object.entries(fields).toSorted(([a], [b]) => (a < b ? -1 : 1)));

/** The access logs of one Envoy, which are one file. */
export interface AccessLogs {
  /** Of a TCP rule. */
  readonly tcp: readonly EnvoyMessage[];
  /** Of TLS that is forwarded by its server name. */
  readonly sni: readonly EnvoyMessage[];
  /** Of TLS, or what should be, that no rule allows. */
  readonly sniRefused: readonly EnvoyMessage[];
  /**
   * Of the HTTP proxy. The name of the route is its kind, or tells that it was a refusal: of all that a route can tell it costs
   * the least, and there are many requests.
   */
  readonly http: readonly EnvoyMessage[];
}

export const accessLogsAt = (path: string): AccessLogs => {
  const sni: AccessFields = { ...connection, kind: 'sni', host: '%REQUESTED_SERVER_NAME%' };
  return {
    tcp: jsonTo(path, { ...connection, kind: 'tcp', host: '' }),
    sni: jsonTo(path, sni),
    sniRefused: jsonTo(path, { ...sni, rule: '', refused: 'not-allowed' }),
    http: textTo(path, {
      ...common,
      kind: '%ROUTE_NAME%',
      host: '%REQ(:AUTHORITY)%',
      method: '%REQ(:METHOD)%',
      status: '%RESPONSE_CODE%',
      refused: '',
      detail: '%RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%',
    }),
  };
};
