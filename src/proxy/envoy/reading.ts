/** From the counts of Envoy to those of rules; pure. */
import type { EngineReading, RefusalWord, RuleReading } from '../engine/engine.ts';
import { ADDRESSES, counts, LIMITED } from './bootstrap.ts';

const PREFIX = 'cluster.';
const fields = ['actives', 'connections', 'bytesSent', 'bytesReceived'] as const;
const none: RuleReading = { actives: 0, connections: 0, bytesSent: 0, bytesReceived: 0 };

/** The reading of all rules that were used. Connections that ended before they told their server name leave no line, nor do those beyond a bound. */
export const readingOf = (
  stats: ReadonlyMap<string, number>,
  refused: ReadonlyMap<RefusalWord, number>,
): EngineReading => {
  const rules = new Map<string, RuleReading>();
  const resolved = new Set<string>();
  for (const [name, value] of stats) {
    if (!name.startsWith(PREFIX)) continue;
    const end = name.lastIndexOf('.');
    if (name.slice(end + 1) === ADDRESSES && value > 0) resolved.add(name.slice(PREFIX.length, end));
    const field = fields.find((each) => counts[each] === name.slice(end + 1));
    if (field === undefined) continue;
    const id = name.slice(PREFIX.length, end);
    rules.set(id, { ...(rules.get(id) ?? none), [field]: value });
  }
  return {
    rules,
    resolved,
    refused: new Map([
      ...refused,
      ...counted('slow', stats.get('listener.rules.downstream_pre_cx_timeout'), refused),
      ...counted('too-many', stats.get(LIMITED), refused),
    ]),
  };
};

/** What leaves no line is added to what does. */
const counted = (
  word: RefusalWord,
  more: number | undefined,
  refused: ReadonlyMap<RefusalWord, number>,
): (readonly [RefusalWord, number])[] =>
  more === undefined || more === 0 ? [] : [[word, (refused.get(word) ?? 0) + more]];
