/**
 * Counts of rules: what has ended comes from the log, what is open from the kernel. A connection that has just ended is in
 * neither for a moment, so a sum never goes back.
 */
import type { Ip } from '../../core/ip/index.ts';
import type { HostPattern, ServedRule } from '../../core/proxy/served.ts';
import type { AccessLine } from '../engine/access-line.ts';
import type { EngineReading, RefusalWord, RuleReading } from '../engine/engine.ts';
import { endpointText, type SocketRow } from './sockets.ts';

/** Where a host leads now, as far as it is known; undefined when nobody can tell. */
export type AddressesOf = (host: HostPattern) => readonly Ip[];

/** Changed in its place: there is a line for every request. */
interface EndedCounts {
  connections: number;
  bytesSent: number;
  bytesReceived: number;
}

const nothing: Readonly<EndedCounts> = { connections: 0, bytesSent: 0, bytesReceived: 0 };

export class Counts {
  readonly #ended = new Map<string, EndedCounts>();
  readonly #refused = new Map<RefusalWord, number>();
  /** Rule -> the most connections that were ever told. */
  readonly #told = new Map<string, number>();

  /** Takes a line of the log. */
  add(line: AccessLine): void {
    if (line.refused !== '') this.#refused.set(line.refused, (this.#refused.get(line.refused) ?? 0) + 1);
    if (line.rule !== '') this.ended(line.rule, line.bytesSent, line.bytesReceived);
  }

  /** One more request or connection of a rule has ended. */
  ended(rule: string, bytesSent: number, bytesReceived: number): void {
    const ended = this.#ended.get(rule);
    if (ended === undefined) this.#ended.set(rule, { connections: 1, bytesSent, bytesReceived });
    else {
      ended.connections += 1;
      ended.bytesSent += bytesSent;
      ended.bytesReceived += bytesReceived;
    }
  }

  /** Forgets a rule that is gone, with all its connections; should it come back, it is counted anew. */
  forget(rule: string): void {
    this.#ended.delete(rule);
    this.#told.delete(rule);
  }

  /** The reading of the rules, given all sockets of the pod. */
  reading(rules: readonly ServedRule[], sockets: readonly SocketRow[], addressesOf: AddressesOf): EngineReading {
    const open = openOf(rules, sockets, addressesOf);
    const ids = new Set([...rules.map(({ id }) => id), ...this.#ended.keys()]);
    return {
      rules: new Map([...ids].map((id) => [id, this.#readingOf(id, open.get(id) ?? 0)])),
      refused: new Map(this.#refused),
    };
  }

  #readingOf(id: string, actives: number): RuleReading {
    const { connections, bytesSent, bytesReceived } = this.#ended.get(id) ?? nothing;
    const told = Math.max(this.#told.get(id) ?? 0, connections + actives);
    this.#told.set(id, told);
    return { actives, connections: told, bytesSent, bytesReceived };
  }
}

/**
 * Open connections by rule. Those of a TCP rule are on its own port. Those of a host are the ones from nginx to its addresses:
 * of several rules whose hosts share an address and port, the first has them all.
 */
const openOf = (
  rules: readonly ServedRule[],
  sockets: readonly SocketRow[],
  addressesOf: AddressesOf,
): Map<string, number> => {
  const byPort = new Map<number, string>();
  const byRemote = new Map<string, string>();
  for (const rule of rules) {
    if (rule.kind === 'tcp') byPort.set(rule.listenPort, rule.id);
    else {
      for (const ip of rule.host.kind === 'address' ? [rule.host.ip] : addressesOf(rule.host)) {
        const remote = endpointText(ip, rule.destPort);
        if (!byRemote.has(remote)) byRemote.set(remote, rule.id);
      }
    }
  }
  const open = new Map<string, number>();
  for (const { state, localPort, remote } of sockets) {
    if (state !== 'established') continue;
    const id = byPort.get(localPort) ?? byRemote.get(remote);
    if (id !== undefined) open.set(id, (open.get(id) ?? 0) + 1);
  }
  return open;
};
