/**
 * EgressError is the one error class of Sallyport. People read `message`, machines match `code`,
 * `data` holds the values the message was made of and `cause` the history.
 * A test compares this list with the table in docs/reference/errors.md.
 */
export const errorCodes = {
  CERTIFICATE_INVALID: 'A certificate or private key cannot be read, does not fit, or was asked for with a bad value.',
  CONFIG_INVALID: 'A configuration file, flag or manifest holds a value that is not allowed.',
  CONNTRACK_FAILED: 'The connection table of a node could not be read or changed.',
  ENGINE_FAILED: 'The engine of a proxy cannot be started or does not answer. What it served last stays in force.',
  KUBECONFIG_INVALID: 'A kubeconfig or the in-cluster credentials cannot be used.',
  NETWORK_UNREADABLE: 'The devices, addresses, rules or routes of a node cannot be read.',
  NFT_REFUSED:
    'The program nft, or the kernel behind it, refused a change or a listing. What was in force stays in force.',
  NFT_UNHEARD: 'The kernel does not tell changes of nftables, so that drift is found late.',
  NFT_UNREADABLE: 'The program nft printed something that is not understood.',
  NODE_TOO_OLD: 'The program runs on a Node.js that is older than the one it was written for.',
  PORT_IN_USE: 'A server cannot listen: another process holds the port, or the address is not on this machine.',
} as const;

export type ErrorCode = keyof typeof errorCodes;

export class EgressError extends Error {
  override readonly name = 'EgressError';
  readonly code: ErrorCode;
  readonly data: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, options: { data?: Record<string, unknown>; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.data = options.data ?? {};
  }
}
