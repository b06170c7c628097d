/**
 * The three ways in which a client changes part of an object: merge patch (RFC 7386), JSON patch (RFC 6902) and
 * server-side apply. Apply is simplified: lists are replaced whole.
 */
import type { JsonPatchOperation } from '../kube/client.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Returns the target with the patch merged in; null removes a field. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isFields(patch)) return patch;
  const result: Record<string, unknown> = isFields(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = mergePatch(result[name], value);
  }
  return result;
}

/** Returns the target after all operations; throws RangeError when a path does not exist or a test fails. */
export function jsonPatch(target: unknown, operations: readonly JsonPatchOperation[]): unknown {
  return operations.reduce<unknown>((value, operation) => {
    const path = operation.path.split('/').slice(1).map(unescapePointer);
    return changeAt(value, path, operation);
  }, target);
}

/**
 * Returns the live object after one manager applied `wanted`: fields that it applied before and does not apply now
 * are removed, all others that it names are set.
 */
export function applyPatch(live: unknown, before: unknown, wanted: unknown): unknown {
  if (!isFields(wanted)) return wanted;
  const result: Record<string, unknown> = isFields(live) ? { ...live } : {};
  const owned = isFields(before) ? before : {};
  for (const name of Object.keys(owned)) {
    if (!(name in wanted)) delete result[name];
  }
  for (const [name, value] of Object.entries(wanted)) {
    if (value !== undefined) result[name] = applyPatch(result[name], owned[name], value);
  }
  return result;
}

/**
 * The fields for which an apply without force is refused: those that it would change although somebody else has written
 * them. A field that still has the value of the manager's last apply is its own.
 */
export function conflictsOf(live: unknown, before: unknown, wanted: unknown, path = ''): string[] {
  if (live === undefined || JSON.stringify(live) === JSON.stringify(wanted)) return [];
  if (!isFields(live) || !isFields(wanted)) return JSON.stringify(live) === JSON.stringify(before) ? [] : [path];
  const owned = isFields(before) ? before : {};
  return Object.entries(wanted).flatMap(([name, value]) =>
    conflictsOf(live[name], owned[name], value, `${path}.${name}`),
  );
}

function changeAt(value: unknown, path: readonly string[], operation: JsonPatchOperation): unknown {
  const [name, ...rest] = path;
  if (name === undefined) {
    if (operation.op === 'remove') return undefined;
    if (operation.op === 'test' && JSON.stringify(value) !== JSON.stringify(operation.value)) {
      throw new RangeError(`the test of ${operation.path} failed`);
    }
    return operation.value;
  }
  if (Array.isArray(value)) return changeItem(value, name, rest, operation);
  const exists = isFields(value) && name in value;
  if (!isFields(value) || (!exists && (rest.length > 0 || operation.op !== 'add'))) {
    throw new RangeError(`there is nothing at ${operation.path}`);
  }
  const { [name]: old, ...others } = value;
  const changed = changeAt(old, rest, operation);
  return changed === undefined ? others : { ...value, [name]: changed };
}

function changeItem(
  list: readonly unknown[],
  name: string,
  rest: readonly string[],
  operation: JsonPatchOperation,
): unknown {
  const position = name === '-' ? list.length : Number(name);
  const isInsert = operation.op === 'add' && rest.length === 0;
  if (!Number.isInteger(position) || position < 0 || position > list.length - (isInsert ? 0 : 1)) {
    throw new RangeError(`there is nothing at ${operation.path}`);
  }
  if (isInsert) return list.toSpliced(position, 0, operation.value);
  const changed = changeAt(list[position], rest, operation);
  return changed === undefined ? list.toSpliced(position, 1) : list.with(position, changed);
}

function unescapePointer(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
