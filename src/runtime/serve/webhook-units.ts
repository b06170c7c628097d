/**
 * The two units of every program with webhooks. `webhookServing` serves them and runs on every replica; `webhookTrust` tells
 * the API server whom to trust and runs on the leader. Both keep the same certificates through the Secret and need
 * nothing of each other.
 */
import { isIP } from 'node:net';
import { type CertificateHooks, CertificateKeeper, type ServingCertificate } from '../certs/keeper.ts';
import { defaultRotationPlan } from '../certs/rotation.ts';
import type { KubeClient } from '../kube/client.ts';
import { isBug, messageOf } from '../process/bug.ts';
import { type Clock, wait } from '../process/clock.ts';
import type { Log } from '../process/log.ts';
import { type AdmissionHandler, type AdmissionHooks, AdmissionServer } from './admission.ts';
import type { ListenOptions } from './listen.ts';
import { type Published, publishTrust, type WebhookSet, type WebhookTarget } from './webhook-trust.ts';

/** What both units need. */
export interface WebhookUnitDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly metrics: { readonly admission: AdmissionHooks; readonly certificates: CertificateHooks };
  /** The Service that the API server calls, and the Secret with the certificates, have this name. */
  readonly serviceName: string;
  readonly namespace: string;
  /** An https URL for processes outside the cluster. All replicas must be given the same one: they share a certificate. */
  readonly url: string | undefined;
}

/** Something that runs by itself and can say what it has not done yet. */
export interface WebhookUnit {
  run(signal: AbortSignal): Promise<void>;
  missing(): string[];
}

/** The configurations are looked at this often; the caBundle of one that somebody has reset is back after that. */
const lookMs = 20_000;
/** After a failure to read or write at the API server. */
const retryMs = 2_000;

/** Serves the webhooks by path. Ready when it listens. */
export const webhookServing = (
  deps: WebhookUnitDeps,
  listen: ListenOptions,
  handlers: Readonly<Record<string, AdmissionHandler>>,
): WebhookUnit => {
  const keeper = keeperOf(deps);
  const { clock, log, metrics } = deps;
  let isListening = false;
  return {
    missing: () => (isListening ? [] : ['admission server']),
    async run(signal) {
      const certificate = await firstCertificate(deps, keeper, signal);
      if (certificate === undefined) return;
      const server = new AdmissionServer({ handlers, clock, log, hooks: metrics.admission }, certificate.leaf);
      try {
        const port = await server.listen(listen);
        isListening = true;
        log.info({ component: 'admission' }, `serves webhooks on port ${port}`);
        await keeper.run(signal, ({ leaf }) => server.setCertificate(leaf));
      } finally {
        isListening = false;
        await server.close();
      }
    },
  };
};

/** Keeps the configurations right. Ready when it has done so once. */
export const webhookTrust = (deps: WebhookUnitDeps, sets: readonly WebhookSet[]): WebhookUnit => {
  const keeper = keeperOf(deps);
  const { client, clock, log, url } = deps;
  const target: WebhookTarget = url === undefined ? { kind: 'service' } : { kind: 'url', base: new URL(url).origin };
  const last = new Map<string, Published>();
  return {
    missing: () => (last.size === sets.length ? [] : ['webhook configurations']),
    async run(signal) {
      while (!signal.aborted) {
        let delayMs = lookMs;
        try {
          const { caBundlePem } = await keeper.refresh(signal);
          for (const set of sets) {
            const published = await publishTrust(client, set, target, caBundlePem, signal);
            if (published !== 'unchanged' && published !== last.get(set.kind)) {
              log.info({ component: 'webhooks', key: set.kind }, `webhook configuration ${set.name} is ${published}`);
            }
            last.set(set.kind, published);
          }
        } catch (error) {
          if (signal.aborted) return;
          if (isBug(error)) throw error;
          delayMs = retryMs;
          log.warn({ component: 'webhooks' }, `cannot write the webhook configurations: ${messageOf(error)}`);
        }
        await wait(clock, delayMs, signal);
      }
    },
  };
};

const keeperOf = ({ client, clock, random, log, metrics, serviceName, namespace, url }: WebhookUnitDeps) =>
  new CertificateKeeper({
    client,
    clock,
    random,
    log,
    hooks: metrics.certificates,
    secret: { namespace, name: serviceName },
    plan: { ...defaultRotationPlan, commonName: serviceName, ...namesOf(serviceName, namespace, url) },
  });

/** The names that the API server may call us by: those of the Service, and the host of the URL. */
const namesOf = (serviceName: string, namespace: string, url: string | undefined) => {
  const service = [`${serviceName}.${namespace}.svc`, `${serviceName}.${namespace}.svc.cluster.local`];
  if (url === undefined) return { dnsNames: service, ipAddresses: [] };
  // An IPv6 address stands in brackets in a URL, and without them in a certificate.
  const host = new URL(url).hostname.replace(/^\[(.*)\]$/, '$1');
  return isIP(host) === 0
    ? { dnsNames: [...service, host], ipAddresses: [] }
    : { dnsNames: service, ipAddresses: [host] };
};

/** The first certificate, as soon as the API server gives one. Undefined when the signal came first. */
const firstCertificate = async (
  { clock, log }: WebhookUnitDeps,
  keeper: CertificateKeeper,
  signal: AbortSignal,
): Promise<ServingCertificate | undefined> => {
  while (!signal.aborted) {
    try {
      return await keeper.refresh(signal);
    } catch (error) {
      if (signal.aborted) return undefined;
      if (isBug(error)) throw error;
      log.warn({ component: 'admission' }, `cannot get a certificate: ${messageOf(error)}`);
      await wait(clock, retryMs, signal);
    }
  }
  return undefined;
};
