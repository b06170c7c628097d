/**
 * The two parts of admission. `admissionServer` serves and runs on every replica; `webhookLoop` tells the API server whom
 * to trust and runs on the leader.
 */
import { withPatience } from '../../runtime/serve/patience.ts';
import { type WebhookUnitDeps, webhookServing, webhookTrust } from '../../runtime/serve/webhook-units.ts';
import type { ControlLoop, ControlLoopDeps } from '../loop/control-loop.ts';
import { judgeOf } from './handlers.ts';
import { webhookSets } from './webhooks.ts';
import { AdmissionWorld } from './world.ts';

/** The Service and the Secret of the chart have this name. */
const serviceName = 'sallyport-webhook';

/** How the API server reaches us. */
export interface AdmissionOptions {
  /**
   * An https URL such as `https://192.0.2.7:9443`, for processes outside the cluster: the configurations are then made
   * by us. All replicas must be given the same one, since they share a certificate.
   */
  readonly url?: string | undefined;
}

/** What both parts need. */
export type AdmissionServerDeps = Omit<ControlLoopDeps, 'events'>;

/** Serves the webhooks. Ready when it listens and the caches are filled. */
export const admissionServer = (deps: AdmissionServerDeps, options: AdmissionOptions = {}): ControlLoop => {
  const { caches, config, clock, site } = deps;
  const world = new AdmissionWorld(caches, config);
  const patience = { clock, view: () => world.view(), missing: () => caches.missing() };
  const serving = webhookServing(unitDeps(deps, options), site.webhook, {
    '/mutate': withPatience(judgeOf('mutate'), patience),
    '/validate': withPatience(judgeOf('validate'), patience),
  });
  return {
    name: 'admission',
    missing: () => [...caches.missing(), ...serving.missing()],
    run: async (signal) => {
      try {
        await serving.run(signal);
      } finally {
        world.close();
      }
    },
  };
};

/** Keeps the webhook configurations right. Ready when it has done so once. */
export const webhookLoop = (deps: AdmissionServerDeps, options: AdmissionOptions = {}): ControlLoop => ({
  name: 'webhooks',
  ...webhookTrust(unitDeps(deps, options), webhookSets),
});

const unitDeps = (
  { client, clock, random, log, metrics, site }: AdmissionServerDeps,
  { url }: AdmissionOptions,
): WebhookUnitDeps => ({ client, clock, random, log, metrics, serviceName, namespace: site.namespace, url });
