/**
 * What ends a loop that no source address tells of: a rule that leads, over a load balancer or another translation, back to a
 * proxy. A plain request counts its turns in a header; connections of a rule that is open to anyone have a bound (ADR 0048).
 */

/** Intermediaries write there who they are, and never remove it (RFC 8586). Servers do nothing about it, unlike about Via. */
export const HOP_HEADER = 'cdn-loop';
/** What proxies write: no name of a proxy or cluster, for servers outside read it. */
export const HOP = 'sallyport';
/** A request that went through proxies so often goes through none again. An application may pass the header on, so it is not one. */
export const MOST_HOPS = 8;
/** Open connections of a TCP rule, or of TLS by server name, that anybody may use, in one replica. */
export const MOST_OPEN = 4096;

/** What a client is told, or a turn of itself. */
export const loopText = (name: string): string =>
  `Sallyport does not let this request through: it comes back to the proxy ${name} again and again.`;
