/**
 * The two parts of admission. `admissionPart` serves and runs on every replica; `webhookPart` tells the API server whom
 * to trust and runs on the leader. Both keep the same certificates through the Secret and need nothing of each other.
 */
import { isIP } from 'node:net';
import { CertificateKeeper, type ServingCertificate } from '../../runtime/certs/keeper.ts';
import { defaultRotationPlan } from '../../runtime/certs/rotation.ts';
import { isBug, messageOf } from '../../runtime/process/bug.ts';
import { wait } from '../../runtime/process/clock.ts';
import { AdmissionServer } from '../../runtime/serve/admission.ts';
import type { Part, PartDeps } from '../part.ts';
import { judgeOf } from './handlers.ts';
import { withPatience } from './patience.ts';
import { type Published, publish, type WebhookTarget } from './publisher.ts';
import { type WebhookKind, webhookKinds, webhookName } from './webhooks.ts';
import { AdmissionWorld } from './world.ts';

/** The Service and the Secret of the chart have this name. */
const serviceName = 'sallyport-webhook';
/** The configurations are looked at this often; the caBundle of one that somebody has reset is back after that. */
const lookMs = 20_000;
/** After a failure to read or write at the API server. */
const retryMs = 2_000;

/** How the API server reaches us. */
export interface AdmissionOptions {
  /**
   * An https URL such as `https://192.0.2.7:9443`, for processes outside the cluster: the configurations are then made
   * by us. All replicas must be given the same one, since they share a certificate.
   */
  readonly url?: string | undefined;
}

/** What both parts need. */
export type AdmissionPartDeps = Omit<PartDeps, 'events'>;

/** Serves the webhooks. Ready when it listens and the caches are filled. */
export const admissionPart = (deps: AdmissionPartDeps, options: AdmissionOptions = {}): Part => {
  const keeper = keeperOf(deps, options);
  const { caches, config, clock, log, metrics, site } = deps;
  let isListening = false;
  return {
    name: 'admission',
    missing: () => [...caches.missing(), ...(isListening ? [] : ['admission server'])],
    async run(signal) {
      const certificate = await firstCertificate(deps, keeper, signal);
      if (certificate === undefined) return;
      const world = new AdmissionWorld(caches, config);
      const patience = { clock, view: () => world.view(), missing: () => caches.missing() };
      const handlers = {
        '/mutate': withPatience(judgeOf('mutate'), patience),
        '/validate': withPatience(judgeOf('validate'), patience),
      };
      const server = new AdmissionServer({ handlers, clock, log, hooks: metrics.admission }, certificate.leaf);
      try {
        const port = await server.listen(site.webhook);
        isListening = true;
        log.info({ component: 'admission' }, `serves webhooks on port ${port}`);
        await keeper.run(signal, ({ leaf }) => server.setCertificate(leaf));
      } finally {
        isListening = false;
        await server.close();
        world.close();
      }
    },
  };
};

/** Keeps the webhook configurations right. Ready when it has done so once. */
export const webhookPart = (deps: AdmissionPartDeps, options: AdmissionOptions = {}): Part => {
  const keeper = keeperOf(deps, options);
  const { client, clock, log } = deps;
  const target: WebhookTarget =
    options.url === undefined ? { kind: 'service' } : { kind: 'url', base: new URL(options.url).origin };
  const last = new Map<WebhookKind, Published>();
  return {
    name: 'webhooks',
    missing: () => (last.size === webhookKinds.length ? [] : ['webhook configurations']),
    async run(signal) {
      while (!signal.aborted) {
        let delayMs = lookMs;
        try {
          const { caBundlePem } = await keeper.refresh(signal);
          for (const kind of webhookKinds) {
            const published = await publish(client, kind, target, caBundlePem, signal);
            if (published !== 'unchanged' && published !== last.get(kind)) {
              log.info({ component: 'webhooks', key: kind }, `webhook configuration ${webhookName} is ${published}`);
            }
            last.set(kind, published);
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

const keeperOf = ({ client, clock, random, log, metrics, site }: AdmissionPartDeps, { url }: AdmissionOptions) =>
  new CertificateKeeper({
    client,
    clock,
    random,
    log,
    hooks: metrics.certificates,
    secret: { namespace: site.namespace, name: serviceName },
    plan: { ...defaultRotationPlan, commonName: serviceName, ...namesOf(site.namespace, url) },
  });

/** The names that the API server may call us by: those of the Service, and the host of the URL. */
const namesOf = (namespace: string, url: string | undefined) => {
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
  { clock, log }: AdmissionPartDeps,
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
