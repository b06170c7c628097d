/** From a path inside a YAML document to the line on which a person finds it. */
import { type Document, isMap, isNode, isScalar, type LineCounter } from 'yaml';

/** Returns the line (from 1) of the value at a path, or of its nearest ancestor that is written down. */
export function lineOf(document: Document, lines: LineCounter, path: readonly PropertyKey[]): number {
  for (let length = path.length; length >= 0; length -= 1) {
    const offset = keyOffset(document, path.slice(0, length)) ?? valueOffset(document, path.slice(0, length));
    if (offset !== undefined) return lines.linePos(offset).line;
  }
  return 1;
}

function valueOffset(document: Document, path: readonly PropertyKey[]): number | undefined {
  const node = path.length === 0 ? document.contents : document.getIn(path, true);
  return isNode(node) ? node.range?.[0] : undefined;
}

/** The key is preferred to the value, since a value may begin lines later. */
function keyOffset(document: Document, path: readonly PropertyKey[]): number | undefined {
  const key = path.at(-1);
  const parent = path.length <= 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  if (key === undefined || !isMap(parent)) return undefined;
  const pair = parent.items.find((item) => isScalar(item.key) && String(item.key.value) === String(key));
  return isScalar(pair?.key) ? pair.key.range?.[0] : undefined;
}
