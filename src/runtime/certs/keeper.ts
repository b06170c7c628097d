/**
 * CertificateKeeper keeps the certificates of one server in a Secret fresh and hands them on. Any number of replicas
 * may keep the same Secret: a write names the version it was decided on, and whoever comes second reads again.
 */
import { EgressError } from '../../api/error.ts';
import { isAlreadyExists, isConflict } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import { Bug, isBug, messageOf } from '../process/bug.ts';
import { type Clock, wait } from '../process/clock.ts';
import type { Log } from '../process/log.ts';
import { type KeyPair, parseCertificate } from './authority.ts';
import { type CertificatePlan, type CertificateState, caBundle, decide, takeStep } from './rotation.ts';
import { readState, type Secret, type SecretRef, secretResource, writeState } from './secret.ts';

/** What a server shows and what its clients must trust. */
export interface ServingCertificate {
  readonly leaf: KeyPair;
  /** All trusted authorities, PEM. Whoever patches webhook configurations writes this into `caBundle`. */
  readonly caBundlePem: string;
}

/** What a keeper tells its metrics. */
export interface CertificateHooks {
  /** The end of the certificate in use and of the authority that signs. */
  expires(leaf: Date, authority: Date): void;
  failed(): void;
}

/** What a keeper needs. */
export interface CertificateKeeperDeps {
  readonly client: KubeClient;
  readonly secret: SecretRef;
  readonly plan: CertificatePlan;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly hooks?: CertificateHooks;
}

/** How often the Secret is read: this long after another replica renewed, everybody uses the new certificate. */
const pollMs = 60_000;
/** After a failure; doubles up to `pollMs`. */
const retryMs = 5_000;
/** Replicas that start together meet at the Secret; more than a few lost races in a row mean something else is wrong. */
const maxRaces = 5;
/** From any state, valid or not, rotation comes to rest within this many steps. */
const maxSteps = 8;

/** Keeps one Secret. `refresh` gives the first certificate, `run` all later ones. */
export class CertificateKeeper {
  readonly #deps: CertificateKeeperDeps;
  readonly #log: Log;
  #current: ServingCertificate | undefined;

  constructor(deps: CertificateKeeperDeps) {
    this.#deps = deps;
    this.#log = deps.log.child({ component: 'certificates' });
    requireSoundPlan(deps.plan);
  }

  /** Reads the Secret, renews what is due and returns what to use now. Rejects when the API server cannot be reached. */
  async refresh(signal: AbortSignal): Promise<ServingCertificate> {
    for (let race = 0; race < maxRaces; race += 1) {
      const state = await this.#refreshOnce(signal);
      if (state?.leaf === undefined) continue;
      this.#current = { leaf: state.leaf, caBundlePem: caBundle(state) };
      this.#reportExpiry(state);
      return this.#current;
    }
    throw new Error(`Secret ${this.#name()} was changed by somebody else ${maxRaces} times in a row`);
  }

  /** Refreshes every minute until the signal is aborted and calls back with every change. Rejects only on a bug. */
  async run(signal: AbortSignal, onChange: (certificate: ServingCertificate) => void): Promise<void> {
    const { clock, random, hooks } = this.#deps;
    let delayMs = pollMs;
    let isFailing = false;
    for (;;) {
      await wait(clock, delayMs * (1 + random() / 5), signal);
      if (signal.aborted) return;
      const before = this.#current;
      try {
        const after = await this.refresh(signal);
        delayMs = pollMs;
        isFailing = false;
        if (!isSame(before, after)) onChange(after);
      } catch (error) {
        if (signal.aborted) return;
        if (isBug(error)) throw error;
        hooks?.failed();
        delayMs = isFailing ? Math.min(pollMs, delayMs * 2) : retryMs;
        isFailing = true;
        this.#log.warn({}, `cannot refresh Secret ${this.#name()}: ${messageOf(error)}`);
      }
    }
  }

  /** One read, decide, write. Undefined when another replica was faster. */
  async #refreshOnce(signal: AbortSignal): Promise<CertificateState | undefined> {
    const { client, secret: ref } = this.#deps;
    const secret = await client.get<Secret>(secretResource, ref, { signal });
    const { state, reasons } = await this.#settle(readState(secret));
    if (reasons.length === 0) return state;
    const wanted = writeState(ref, state, secret);
    try {
      if (secret === undefined) await client.create(secretResource, wanted, { signal });
      else await client.update(secretResource, wanted, { signal });
    } catch (error) {
      if (isConflict(error) || isAlreadyExists(error)) return undefined;
      throw error;
    }
    this.#log.info({ key: this.#name() }, `renewed: ${reasons.join('; ')}`);
    return state;
  }

  /** Takes steps until nothing is left to do. */
  async #settle(
    start: CertificateState,
  ): Promise<{ readonly state: CertificateState; readonly reasons: readonly string[] }> {
    const { plan, clock } = this.#deps;
    const now = clock.now();
    let state = start;
    const reasons: string[] = [];
    for (let count = 0; count < maxSteps; count += 1) {
      const step = decide(state, plan, now);
      if (step.kind === 'nothing') return { state, reasons };
      state = await takeStep(state, step, plan, now);
      reasons.push(`${step.kind}, ${step.reason}`);
    }
    throw new Bug(`certificate rotation does not come to rest: ${reasons.join('; ')}`);
  }

  #reportExpiry({ leaf, signer }: CertificateState): void {
    if (leaf === undefined || signer === undefined) return;
    const [leafEnd, signerEnd] = [leaf, signer].map((pair) => parseCertificate(pair.certificatePem).validToDate);
    if (leafEnd !== undefined && signerEnd !== undefined) this.#deps.hooks?.expires(leafEnd, signerEnd);
  }

  #name(): string {
    return `${this.#deps.secret.namespace}/${this.#deps.secret.name}`;
  }
}

function isSame(a: ServingCertificate | undefined, b: ServingCertificate): boolean {
  return a?.caBundlePem === b.caBundlePem && a.leaf.certificatePem === b.leaf.certificatePem;
}

/** The successor of an authority must be trusted for `trustLeadMs` within the last third of its life. */
function requireSoundPlan(plan: CertificatePlan): void {
  const thirdMs = (plan.authorityLifetimeDays * 24 * 60 * 60 * 1000) / 3;
  if (plan.trustLeadMs < thirdMs) return;
  throw new EgressError(
    'CONFIG_INVALID',
    `an authority lifetime of ${plan.authorityLifetimeDays} days is too short: a third of it must be longer than the trust lead of ${plan.trustLeadMs} ms`,
    { data: { authorityLifetimeDays: plan.authorityLifetimeDays, trustLeadMs: plan.trustLeadMs } },
  );
}
