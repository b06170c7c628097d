/**
 * Why a text is not an address, CIDR or range. The reason is for machines and travels unchanged into conditions
 * and metrics; the message is one sentence for people that quotes the text and says what to write instead.
 */
export const ipReasons = {
  Empty: 'The text is empty.',
  Space: 'The text holds a space or another blank.',
  NotAnAddress: 'The text is neither an IPv4 nor an IPv6 address.',
  PartCount: 'An IPv4 address does not have exactly four parts.',
  LeadingZero: 'A decimal number starts with a zero, which some programs read as octal.',
  PartTooLarge: 'A part of an IPv4 address is above 255.',
  ZoneId: 'An IPv6 address carries a zone such as %eth0, which means nothing on another machine.',
  Ipv4Mapped: 'An IPv4 address is written inside IPv6, so two texts would name one host.',
  WrongFamily: 'The address is of the other family than the one asked for.',
  PrefixMissing: 'A CIDR has no prefix length.',
  PrefixUnexpected: 'A prefix length stands where a single address is asked for.',
  PrefixInvalid: 'The prefix length is not a whole number from 0 to the width of the family.',
  HostBitsSet: 'The address of a CIDR has bits set behind the prefix.',
  RangeMalformed: 'A range does not have the form first-last.',
  RangeReversed: 'A range ends before it starts.',
  RangeMixed: 'A range starts in one family and ends in the other.',
} as const;

/** A name from ipReasons; match on this, never on the message. */
export type IpReason = keyof typeof ipReasons;

/** A text that was refused. `index` is its place in the list, where a list was read. */
export interface IpRefusal {
  readonly ok: false;
  readonly reason: IpReason;
  readonly message: string;
  readonly index?: number;
}

/** The outcome of every parse function of this folder: they never throw on bad text. */
export type Parsed<T> = { readonly ok: true; readonly value: T } | IpRefusal;

/** Wraps a value that was read well. */
export const accept = <T>(value: T): Parsed<T> => ({ ok: true, value });

/** Refuses `text`; `because` completes the sentence `"text" ...` and names the remedy. */
export const refuse = (text: string, reason: IpReason, because: string): IpRefusal => ({
  ok: false,
  reason,
  message: `${quote(text)} ${because}.`,
});

// A manifest may hold a text of any length, and a status message must stay one line that can be read.
const QUOTE_LIMIT = 64;

const quote = (text: string): string =>
  JSON.stringify(text.length > QUOTE_LIMIT ? `${text.slice(0, QUOTE_LIMIT)}...` : text);
