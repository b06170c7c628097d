/**
 * Replicas asks the ready pods of all proxies for their reports, again and again. It decides nothing: who is silent for how
 * long is told, and what it means is for src/core/proxy.
 */
import { readFile } from 'node:fs/promises';
import { ProxyReport } from '../api/proxy-report.ts';
import type { Ip } from '../core/ip/index.ts';
import type { Replica } from '../core/proxy/report.ts';
import { proxyPorts } from '../core/proxy/served.ts';
import { type Clock, wait } from '../runtime/process/clock.ts';
import type { ProxyPod } from './inputs/pods.ts';

/** Asks one address for its report; rejects when it does not answer within the limit, or not with a report. */
export type ReadReport = (ip: Ip, signal: AbortSignal) => Promise<ProxyReport>;

export interface ReplicasDeps {
  readonly clock: Clock;
  readonly read: ReadReport;
  /** The pods to ask. */
  readonly pods: () => readonly ProxyPod[];
  /** True while something is under way: then pods are asked more often. */
  readonly isUrgent: () => boolean;
  /** Called when a report differs from the one before, and when a pod falls silent. */
  readonly onChange: () => void;
}

/** How often pods are asked: at rest, and while rules are on their way. */
const restMs = 2_000;
const urgentMs = 250;
/** One answer may be lost, and a busy pod may be slow; after this long nobody knows what a replica does. */
const silentAfterMs = 6_000;
const answerLimitMs = 1_500;

interface ReplicaContact {
  /** When it answered last, or when it was first asked. */
  sinceMs: number;
  report: ProxyReport | undefined;
  /** Report and silence as they were told last. */
  told: string;
}

export class Replicas {
  readonly #deps: ReplicasDeps;
  /** uid of the pod -> what is known of it */
  readonly #heard = new Map<string, ReplicaContact>();

  constructor(deps: ReplicasDeps) {
    this.#deps = deps;
  }

  /** What a pod told last. */
  of(pod: ProxyPod): Replica {
    const heard = this.#heard.get(pod.uid);
    return { pod: pod.name, isSilent: heard !== undefined && this.#isSilent(heard), report: heard?.report };
  }

  /** True when every one of the pods has answered, or has had the time to. Before that nothing is known about them. */
  isSettled(pods: readonly ProxyPod[]): boolean {
    return pods.every((pod) => {
      const heard = this.#heard.get(pod.uid);
      return heard !== undefined && (heard.report !== undefined || this.#isSilent(heard));
    });
  }

  /** Asks until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, pods, isUrgent } = this.#deps;
    while (!signal.aborted) {
      const present = pods();
      const uids = new Set(present.map(({ uid }) => uid));
      for (const uid of this.#heard.keys()) if (!uids.has(uid)) this.#heard.delete(uid);
      await Promise.all(present.map((pod) => this.#ask(pod, signal)));
      // Looked at often, because what is urgent may begin at any moment.
      for (let waitedMs = 0; waitedMs < (isUrgent() ? urgentMs : restMs) && !signal.aborted; waitedMs += urgentMs) {
        await wait(clock, urgentMs, signal);
      }
    }
  }

  async #ask(pod: ProxyPod, signal: AbortSignal): Promise<void> {
    const { clock, read, onChange } = this.#deps;
    const heard = this.#heard.get(pod.uid) ?? { sinceMs: clock.monotonicMs(), report: undefined, told: '' };
    this.#heard.set(pod.uid, heard);
    const [ip] = pod.ips;
    if (ip !== undefined) {
      try {
        heard.report = await read(ip, AbortSignal.any([signal, AbortSignal.timeout(answerLimitMs)]));
        heard.sinceMs = clock.monotonicMs();
      } catch {
        // Not answering is no event: being silent for long is, and that shows below.
      }
    }
    const told = tellingOf(heard.report, this.#isSilent(heard));
    if (told === heard.told || signal.aborted) return;
    heard.told = told;
    onChange();
  }

  #isSilent({ sinceMs }: ReplicaContact): boolean {
    return this.#deps.clock.monotonicMs() - sinceMs > silentAfterMs;
  }
}

/** What of a report can change a status; bytes change all the time and are for metrics. */
const tellingOf = (report: ProxyReport | undefined, isSilent: boolean): string => {
  const rules = report?.rules.map(({ id, state, reason, sentence, actives, addresses }) =>
    [id, state, reason, sentence, actives, ...addresses].join(' '),
  );
  return JSON.stringify([isSilent, report?.revision, report?.egresses, rules]);
};

/**
 * Reads the reports of pods over HTTP, with the token of the file as it is at that moment: it is changed before it runs out.
 * The token must be good for reports only, because whoever answers at the address of a pod sees it.
 */
export const reportReader =
  (tokenFile: string | undefined): ReadReport =>
  async (ip, signal) => {
    const host = ip.includes(':') ? `[${ip}]` : ip;
    const token = tokenFile === undefined ? undefined : (await readFile(tokenFile, 'utf8')).trim();
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const answer = await fetch(`http://${host}:${proxyPorts.report}/report`, { headers, signal, redirect: 'error' });
    if (!answer.ok) throw new Error(`the replica answers ${answer.status}`);
    return ProxyReport.parse(await answer.json());
  };
