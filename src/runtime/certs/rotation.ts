/**
 * Rotation decides what to do with the certificates of one server, as a pure function of their dates.
 *
 *   signer  signs server certificates.            next     is trusted already and will sign later.
 *   retired only trusted, until they run out.      leaf     is what the server shows.
 *
 * Trust comes before use: verifiers learn a new authority `trustLeadMs` before anything it signed is shown, and keep
 * an old one as long as anything it signed is valid. So a verifier or a replica that lags behind by less than that
 * never sees a certificate it does not know. Read `CertificateState` first.
 */
import type { X509Certificate } from 'node:crypto';
import { assertNever, Bug } from '../process/bug.ts';
import {
  type Authority,
  backdateMs,
  createAuthority,
  issue,
  type KeyPair,
  keyMatches,
  parseCertificate,
} from './authority.ts';

/** Everything we know about the certificates of one server. Newest knowledge is in the Secret, not in memory. */
export interface CertificateState {
  readonly signer?: Authority | undefined;
  readonly next?: Authority | undefined;
  /** PEM certificates of authorities that sign no more. */
  readonly retired: readonly string[];
  readonly leaf?: KeyPair | undefined;
}

/** What the certificates should be like. */
export interface CertificatePlan {
  readonly commonName: string;
  readonly dnsNames: readonly string[];
  readonly ipAddresses?: readonly string[];
  readonly authorityLifetimeDays: number;
  readonly leafLifetimeDays: number;
  /** How long an authority must be trusted before it signs. */
  readonly trustLeadMs: number;
}

/** Ten years and one year, with a day for verifiers to learn a new authority. */
export const defaultRotationPlan = {
  authorityLifetimeDays: 3650,
  leafLifetimeDays: 365,
  trustLeadMs: 24 * 60 * 60 * 1000,
} as const;

/** The next thing to do. `nothing` says until when. */
export type RotationStep =
  | { readonly kind: 'nothing'; readonly until: Date }
  /** No authority can sign: begin anew. Verifiers have to learn the new one; there is no gentler way. */
  | { readonly kind: 'create-signer'; readonly reason: string }
  /** The signer is past two thirds of its life: make its successor known. */
  | { readonly kind: 'create-next'; readonly reason: string }
  /** The successor is known for long enough: it signs from now on. */
  | { readonly kind: 'promote-next'; readonly reason: string }
  | { readonly kind: 'renew-leaf'; readonly reason: string }
  /** An authority has run out: nothing it signed is valid any more. */
  | { readonly kind: 'drop-expired'; readonly reason: string };

/** Returns the next step. After `takeStep` ask again: after a few steps the answer is `nothing`. */
export function decide(state: CertificateState, plan: CertificatePlan, now: Date): RotationStep {
  const signer = usable(state.signer, now);
  if (signer === undefined) {
    return { kind: 'create-signer', reason: state.signer === undefined ? 'there is none' : 'it cannot be used' };
  }
  if (state.retired.some((pem) => parseCertificate(pem).validToDate <= now)) {
    return { kind: 'drop-expired', reason: 'an old authority has run out' };
  }
  const next = usable(state.next, now);
  if (next === undefined && renewalTime(signer) <= now) {
    return { kind: 'create-next', reason: 'the authority is past two thirds of its life' };
  }
  const promotion = next && new Date(bornAt(next).getTime() + plan.trustLeadMs);
  if (promotion !== undefined && promotion <= now) {
    return { kind: 'promote-next', reason: 'the new authority is known for long enough' };
  }
  const flaw = leafFlaw(state, plan, now);
  if (flaw !== undefined) return { kind: 'renew-leaf', reason: flaw };
  const times = [promotion ?? renewalTime(signer), ...state.retired.map((pem) => parseCertificate(pem).validToDate)];
  if (state.leaf !== undefined) times.push(renewalTime(parseCertificate(state.leaf.certificatePem)));
  return { kind: 'nothing', until: new Date(Math.min(...times.map((time) => time.getTime()))) };
}

/** Returns the state after one step. Only keys are random; all dates follow from `now`. */
export async function takeStep(
  state: CertificateState,
  step: RotationStep,
  plan: CertificatePlan,
  now: Date,
): Promise<CertificateState> {
  const authority = { commonName: `${plan.commonName}-ca`, lifetimeDays: plan.authorityLifetimeDays, now };
  switch (step.kind) {
    case 'nothing':
      return state;
    case 'create-signer':
      return {
        ...state,
        // A successor that is already trusted is better than a stranger.
        signer: usable(state.next, now) === undefined ? await createAuthority(authority) : state.next,
        next: undefined,
        // What the old one has signed may still be shown somewhere, and stays good as long as it is trusted.
        retired: retire(state),
      };
    case 'create-next':
      return { ...state, next: await createAuthority(authority) };
    case 'promote-next':
      return { ...state, signer: state.next, next: undefined, retired: retire(state) };
    case 'drop-expired':
      return { ...state, retired: state.retired.filter((pem) => parseCertificate(pem).validToDate > now) };
    case 'renew-leaf': {
      if (state.signer === undefined) throw new Bug('a leaf cannot be renewed without a signer');
      const { commonName, dnsNames, ipAddresses = [], leafLifetimeDays: lifetimeDays } = plan;
      const request = { commonName, dnsNames, ipAddresses, usages: ['server'] as const, lifetimeDays, now };
      return { ...state, leaf: await issue(state.signer, request) };
    }
    default:
      return assertNever(step);
  }
}

/** Returns all trusted authorities as one PEM text: the signer first, then its successor, then the retired ones. */
export function caBundle(state: CertificateState): string {
  return [state.signer?.certificatePem, state.next?.certificatePem, ...state.retired].filter(Boolean).join('');
}

/** Two thirds of the life from birth to end. */
export function renewalTime(certificate: X509Certificate): Date {
  const start = bornAt(certificate).getTime();
  return new Date(start + ((certificate.validToDate.getTime() - start) * 2) / 3);
}

function retire(state: CertificateState): readonly string[] {
  return state.signer === undefined ? state.retired : [...state.retired, state.signer.certificatePem];
}

/** The instant of signing: `issue` backdates the start of validity. */
function bornAt(certificate: X509Certificate): Date {
  return new Date(certificate.validFromDate.getTime() + backdateMs);
}

/** The parsed certificate of an authority that can sign now; undefined otherwise. */
function usable(authority: Authority | undefined, now: Date): X509Certificate | undefined {
  if (authority === undefined) return undefined;
  const certificate = parseCertificate(authority.certificatePem);
  const isUsable = certificate.ca && certificate.validToDate > now && keyMatches(certificate, authority.keyPem);
  return isUsable ? certificate : undefined;
}

/** Why the leaf must be replaced; undefined when it is good. */
function leafFlaw({ leaf, signer, retired }: CertificateState, plan: CertificatePlan, now: Date): string | undefined {
  if (leaf === undefined) return 'there is none';
  const certificate = parseCertificate(leaf.certificatePem);
  if (!keyMatches(certificate, leaf.keyPem)) return 'its key does not fit';
  const issuers = [...(signer === undefined ? [] : [signer.certificatePem]), ...retired].map(parseCertificate);
  if (!issuers.some((issuer) => certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey))) {
    return 'no trusted authority has signed it';
  }
  const wanted = [
    ...plan.dnsNames.map((name) => certificate.checkHost(name)),
    ...(plan.ipAddresses ?? []).map((address) => certificate.checkIP(address)),
  ];
  if (wanted.includes(undefined)) return 'it lacks a name';
  if (renewalTime(certificate) <= now) return 'it is past two thirds of its life';
  return undefined;
}
