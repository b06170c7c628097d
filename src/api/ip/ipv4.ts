/** IPv4 text and its 32-bit value. Only the strict form with four decimal parts exists here. */
import { accept, type IpRefusal, type Parsed, refuse } from './reason.ts';

const FORM = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/;

/** The value of four decimal parts without leading zeros; anything else is refused with its reason. */
export const readIpv4 = (text: string): Parsed<number> => {
  const match = FORM.exec(text);
  if (match === null) return explain(text);
  let value = 0;
  for (let index = 1; index <= 4; index += 1) {
    const part = match[index] ?? '';
    const number = Number(part);
    if (number > 255 || (part.length > 1 && part.startsWith('0'))) return explain(text);
    value = value * 256 + number;
  }
  return accept(value);
};

/** The one text of a value from 0 to 2^32 - 1. */
export const writeIpv4 = (value: number): string =>
  `${value >>> 24}.${(value >>> 16) & 255}.${(value >>> 8) & 255}.${value & 255}`;

// Only reached for text that readIpv4 did not take, so it may be slow and must always end in a refusal.
const explain = (text: string): IpRefusal => {
  const parts = text.split('.');
  const strange = parts.find((part) => !/^\d+$/.test(part));
  if (strange !== undefined) {
    return refuse(
      text,
      'NotAnAddress',
      'is not an IP address; write four numbers such as 10.6.1.21, or an IPv6 address',
    );
  }
  if (parts.length !== 4) {
    return refuse(
      text,
      'PartCount',
      `has ${parts.length} ${parts.length === 1 ? 'part' : 'parts'} where an IPv4 address has four`,
    );
  }
  const padded = parts.find((part) => part.length > 1 && part.startsWith('0'));
  if (padded !== undefined) {
    const plain = parts.map((part) => part.replace(/^0+(?=\d)/, '')).join('.');
    return refuse(
      text,
      'LeadingZero',
      `has the part ${padded}, which some programs read as octal; write ${plain} if you mean decimal`,
    );
  }
  const large = parts.find((part) => part.length > 3 || Number(part) > 255);
  return refuse(text, 'PartTooLarge', `has the part ${large}; each part is a number from 0 to 255`);
};
