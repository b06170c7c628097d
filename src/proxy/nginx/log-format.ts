/**
 * The formats of nginx's log. Most lines are about requests that a rule let through; nginx writes these as users read them, but
 * for their time, so that they cost no more than a glance (log-reader.ts). All other lines are told in words by their
 * place, and written anew (access-log.ts).
 */

/** The time of an access line has so many characters; nginx's own is shorter. */
const TIME_LENGTH = '2026-11-15T13:00:00.000Z'.length;
const MSEC_LENGTH = '1700000000.000'.length;

/**
 * A line of a request that the rule let through. What is counted stands first; the time is the end of the request in
 * seconds, with room for the words that take its place. A number of milliseconds is one of seconds with an exponent.
 */
export const finalFormat = (id: string): string =>
  `{"time":"$msec${' '.repeat(TIME_LENGTH - MSEC_LENGTH)}","ms":\${request_time}e3,"client":"$remote_addr:$remote_port",` +
  `"rule":"${id}","bytesSent":$upstream_bytes_sent,"bytesReceived":$upstream_bytes_received,"kind":"http","host":"$http_host",` +
  `"upstream":"$upstream_addr","method":"$request_method","status":$status,"refused":"","detail":""}`;

/** Any other request. */
export const httpWords =
  '["http","$rule","$remote_addr","$remote_port","$shown","$upstream_addr","$asked_method",' +
  '"$status","$upstream_bytes_sent","$upstream_bytes_received","$msec","$request_time","$upstream_header_time"]';

/** A connection; the rule is in the variable. */
export const streamWords = (kind: 'tcp' | 'sni', ruleVariable: string): string =>
  `["${kind}","${ruleVariable}","$remote_addr","$remote_port","$ssl_preread_server_name","$upstream_addr","",` +
  '"$status","$upstream_bytes_sent","$upstream_bytes_received","$msec","$session_time",""]';
