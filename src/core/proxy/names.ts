/** Names that are made and not given: of rules without one, and of the Services of rules. */
import { hashText } from '../values/hash.ts';

const maxNameLength = 63;

/** The name of a rule that has none, from what it is about: `tcp-3306`, `https-api-example-com`. */
export const nameFor = (kind: 'tcp' | 'http' | 'https', subject: string): string =>
  fitting(
    `${kind}-${subject
      .toLowerCase()
      .replace(/^\*\./, 'any-')
      .replace(/[^a-z0-9]+/g, '-')}`.replace(/-+$/, ''),
    subject,
  );

/** The names, each once: one that is taken already gets the next free number behind it. */
export const distinctNames = (names: readonly string[]): string[] => {
  const taken = new Set<string>();
  return names.map((name) => {
    let candidate = name;
    for (let number = 2; taken.has(candidate); number += 1)
      candidate = fitting(`${name}-${number}`, `${name} ${number}`);
    taken.add(candidate);
    return candidate;
  });
};

/** The id of a rule. Names hold no slash, so no two rules share one. */
export const ruleId = (egressKey: string, rule: string): string => `${egressKey}/${rule}`;

/** The name of the Service of a rule: `egress-rule`, as far as a Service can be called so. */
export const serviceNameOf = (egress: string, rule: string): string => {
  const plain = `${egress}-${rule}`;
  const name = plain.replaceAll('.', '-').replace(/^([^a-z])/, 'e$1');
  return name === plain ? fitting(name, plain) : fitting(`${name}-${hashOf(plain)}`, plain);
};

/** The same with a hash of the rule behind it, for when another rule has the name. */
export const otherServiceNameOf = (egress: string, rule: string): string => {
  const id = `${egress}/${rule}`;
  return fitting(`${serviceNameOf(egress, rule)}-${hashOf(id)}`, id);
};

// A name that is too long loses its end and gets a hash of the whole, so that two long ones stay different.
const fitting = (name: string, whole: string): string =>
  name.length <= maxNameLength ? name : `${name.slice(0, maxNameLength - 9).replace(/-+$/, '')}-${hashOf(whole)}`;

const hashOf = (text: string): string => hashText(text).toString(16).padStart(8, '0');
