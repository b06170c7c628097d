/**
 * Structural sharing: a new value takes over every part of the old one that says the same. Readers can then see by
 * identity what did not change, and work that was done for a part need not be done again when another part changes.
 */
import { isDeepStrictEqual } from 'node:util';

/** `value`, with each part of it that equals its counterpart in `previous` replaced by that; `previous` when all do. */
export function sharing<T>(previous: T, value: T): T {
  if (Object.is(previous, value)) return previous;
  if (Array.isArray(previous) && Array.isArray(value)) {
    const items = value.map((item, index) => (index < previous.length ? sharing(previous[index], item) : item));
    const isSame = items.length === previous.length && items.every((item, index) => Object.is(item, previous[index]));
    // The items are those of `value` or equal to them, so the list is of the same type.
    return isSame ? previous : (items as T);
  }
  if (!isRecord(previous) || !isRecord(value)) return isDeepStrictEqual(previous, value) ? previous : value;
  const names = Object.keys(value);
  const parts: [string, unknown][] = [];
  let isSame = names.length === Object.keys(previous).length;
  for (const name of names) {
    const isKnown = Object.hasOwn(previous, name);
    const part = isKnown ? sharing(previous[name], value[name]) : value[name];
    isSame &&= isKnown && Object.is(part, previous[name]);
    parts.push([name, part]);
  }
  // The same names with equal parts: of the same type. Assigned one by one, a name of users such as __proto__ would be no name.
  return isSame ? previous : (Object.fromEntries(parts) as T);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
