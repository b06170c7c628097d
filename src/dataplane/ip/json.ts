/**
 * What `ip -j` and `bridge -j` print, as plain fields. It comes from outside, so nothing is believed to be there: a field
 * of another type than asked for is as good as absent.
 */
import { type Ip, parseIp } from '../../core/ip/index.ts';

/** One object of the output. */
export type Fields = Readonly<Record<string, unknown>>;

/** The documents of an output: a batch prints one list on a line for each command. Undefined when it cannot be read. */
export const parseDocuments = (output: string): readonly (readonly Fields[])[] | undefined => {
  const documents: Fields[][] = [];
  for (const line of output.split('\n').filter((text) => text.trim() !== '')) {
    const document = parseLine(line);
    if (document === undefined) return undefined;
    // ip prints an empty object for an entry that its filter has left out.
    documents.push(document.filter((entry) => Object.keys(entry).length > 0));
  }
  return documents;
};

/** A text; undefined when absent. */
export const textOf = (fields: Fields, name: string): string | undefined => {
  const value = fields[name];
  return typeof value === 'string' ? value : undefined;
};

/** A number; undefined when absent. */
export const numberOf = (fields: Fields, name: string): number | undefined => {
  const value = fields[name];
  return typeof value === 'number' ? value : undefined;
};

/** An address in our writing; undefined when absent, or when it is one that core/ip refuses to name. */
export const ipOf = (fields: Fields, name: string): Ip | undefined => {
  const parsed = parseIp(textOf(fields, name) ?? '');
  return parsed.ok ? parsed.value : undefined;
};

/** The objects of a list; empty when absent. */
export const listOf = (fields: Fields, name: string): readonly Fields[] => {
  const value = fields[name];
  return Array.isArray(value) ? value.filter(isFields) : [];
};

/** An inner object; empty when absent. */
export const objectOf = (fields: Fields, name: string): Fields => {
  const value = fields[name];
  return isFields(value) ? value : {};
};

/** True when a list of texts holds one. */
export const includes = (fields: Fields, name: string, text: string): boolean => {
  const value = fields[name];
  return Array.isArray(value) && value.includes(text);
};

const parseLine = (line: string): Fields[] | undefined => {
  try {
    const value: unknown = JSON.parse(line);
    return Array.isArray(value) ? value.filter(isFields) : undefined;
  } catch {
    return undefined;
  }
};

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
