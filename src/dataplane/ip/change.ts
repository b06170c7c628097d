/** Change: one line for `ip` or `bridge`, with what it is about. Refused lines become refusals of the whole step. */
import type { Reason } from '../../api/reasons.ts';
import type { Ip } from '../../core/ip/index.ts';

/** The programs that read lines. `ip -6` is for rules, whose lines do not say which family they are of. */
export const tools = {
  ip: ['ip'],
  'ip -6': ['ip', '-6'],
  bridge: ['bridge'],
} as const;
export type Tool = keyof typeof tools;

export interface Change {
  readonly tool: Tool;
  readonly line: string;
  /** For people: `address 10.6.0.100/32 on egw-eip`. */
  readonly what: string;
  /** The reason of a refusal, unless the message tells a more special one. */
  readonly reason: Reason;
  readonly causes?: readonly Cause[];
  /** The EIP or the peer that it is about. */
  readonly ip?: Ip;
}

/** What a message of iproute2 or of the kernel means. */
export interface Cause {
  readonly pattern: RegExp;
  readonly reason: Reason;
}

/** A change that was not made. */
export interface Refusal {
  readonly what: string;
  /** What the kernel or the program said, as part of a sentence. */
  readonly message: string;
  readonly reason: Reason;
  readonly ip?: Ip;
}

/** What a step did. */
export interface NetworkOutcome {
  /** How many lines the kernel took; 0 when all was in step. */
  readonly changed: number;
  readonly refused: readonly Refusal[];
}

/** Both outcomes as one. */
export const joined = (first: NetworkOutcome, second: NetworkOutcome): NetworkOutcome => ({
  changed: first.changed + second.changed,
  refused: [...first.refused, ...second.refused],
});

/** Nothing was to be done. */
export const nothingDone: NetworkOutcome = { changed: 0, refused: [] };

/** The refusal of a change, with the reason that its message tells. */
export const refusalOf = ({ what, reason, causes = [], ip }: Change, message: string): Refusal => ({
  what,
  message: plain(message),
  reason: [...commonCauses, ...causes].find(({ pattern }) => pattern.test(message))?.reason ?? reason,
  ...(ip === undefined ? {} : { ip }),
});

/** A message as part of a sentence: without who says it, in one line, without the full stop. */
const plain = (message: string): string =>
  message
    .split('\n')
    .map((part) =>
      part
        .trim()
        .replace(/^(Error: |RTNETLINK answers: )/, '')
        .replace(/\.$/, ''),
    )
    .filter((part) => part !== '')
    .join('; ');

const commonCauses: readonly Cause[] = [{ pattern: /Operation not permitted/, reason: 'CapabilityMissing' }];
