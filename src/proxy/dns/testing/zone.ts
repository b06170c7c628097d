/** The outside as a zone in memory: names, what they answer now, and how often they were asked. It holds state, as servers do. */
import { type Ip, parseIp } from '../../../core/ip/index.ts';
import { type DnsAnswer, rcodes, types } from '../message.ts';
import type { Outside } from '../outside.ts';

/** What a name is. Addresses and an alias may not be mixed, as in DNS. */
export interface ZoneEntry {
  readonly addresses?: readonly string[];
  readonly alias?: string;
  readonly ttlSeconds?: number;
}

/** A zone and a switch: servers that do not answer are an outage. */
export class Zone implements Outside {
  readonly entries = new Map<string, ZoneEntry>();
  readonly asked = new Map<string, number>();
  isDown = false;
  /** Held answers: while set, a question waits for it. */
  gate: Promise<void> | undefined;
  /** Whether a server follows aliases by itself, as resolvers usually do. */
  isRecursive = true;

  async ask(name: string, type: 'A' | 'AAAA'): ReturnType<Outside['ask']> {
    this.asked.set(name, (this.asked.get(name) ?? 0) + 1);
    await this.gate;
    if (this.isDown) return { kind: 'failed', sentence: 'no answer within 1000 ms' };
    const records = [...this.#records(name, type)];
    const rcode = this.entries.has(name) ? rcodes.ok : rcodes.nxdomain;
    const response = { id: 0, name, type: types[type], rcode, isTruncated: false, records, negativeSeconds: undefined };
    return { kind: 'answer', response };
  }

  *#records(name: string, type: 'A' | 'AAAA'): Generator<DnsAnswer> {
    const entry = this.entries.get(name);
    const ttlSeconds = entry?.ttlSeconds ?? 60;
    if (entry?.alias !== undefined) {
      yield { kind: 'alias', name, ttlSeconds, target: entry.alias };
      if (this.isRecursive) yield* this.#records(entry.alias, type);
    }
    for (const address of entry?.addresses ?? []) {
      if (address.includes(':') === (type === 'AAAA'))
        yield { kind: 'address', name, ttlSeconds, type, ip: ipOf(address) };
    }
  }
}

const ipOf = (text: string): Ip | undefined => {
  const parsed = parseIp(text);
  return parsed.ok ? parsed.value : undefined;
};
