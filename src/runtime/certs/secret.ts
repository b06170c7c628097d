/**
 * The Secret that holds a CertificateState. `tls.crt`, `tls.key` and `ca.crt` have the names other tools expect;
 * the rest is ours. What cannot be read counts as absent, and rotation replaces it.
 */
import { coreResource, type KubeObject } from '../kube/resource.ts';
import { type KeyPair, parseCertificate } from './authority.ts';
import { type CertificateState, caBundle } from './rotation.ts';

/** Where Secrets live on the API server. */
export const secretResource = coreResource('secrets', 'Secret', true);

/** The name of one Secret. */
export interface SecretRef {
  readonly namespace: string;
  readonly name: string;
}

/** A Secret as the API sends it: values are base64. */
export interface Secret extends KubeObject {
  readonly type?: string;
  readonly data?: Readonly<Record<string, string>>;
}

/** Returns the state held in a Secret; an absent Secret is the empty state. */
export function readState(secret: Secret | undefined): CertificateState {
  const field = (name: string): string => Buffer.from(secret?.data?.[name] ?? '', 'base64').toString('utf8');
  const pair = (certificate: string, key: string): KeyPair | undefined => {
    const [certificatePem] = readCertificates(field(certificate));
    return certificatePem === undefined ? undefined : { certificatePem, keyPem: field(key) };
  };
  return {
    signer: pair('signer.crt', 'signer.key'),
    next: pair('next.crt', 'next.key'),
    retired: readCertificates(field('retired.crt')),
    leaf: pair('tls.crt', 'tls.key'),
  };
}

/** Returns the Secret for a state. Labels, annotations and version of an existing one are kept. */
export function writeState(ref: SecretRef, state: CertificateState, existing: Secret | undefined): Secret {
  const fields = {
    'ca.crt': caBundle(state),
    'tls.crt': state.leaf?.certificatePem,
    'tls.key': state.leaf?.keyPem,
    'signer.crt': state.signer?.certificatePem,
    'signer.key': state.signer?.keyPem,
    'next.crt': state.next?.certificatePem,
    'next.key': state.next?.keyPem,
    'retired.crt': state.retired.join(''),
  };
  const data: Record<string, string> = {};
  for (const [name, text] of Object.entries(fields)) {
    if (text !== undefined && text !== '') data[name] = Buffer.from(text).toString('base64');
  }
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: existing?.metadata ?? { name: ref.name, namespace: ref.namespace },
    type: existing?.type ?? 'Opaque',
    data,
  };
}

/** The readable certificates of a PEM text, each as its own PEM text. */
function readCertificates(text: string): readonly string[] {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.filter(isReadable).map((block) => `${block}\n`);
}

function isReadable(certificatePem: string): boolean {
  try {
    parseCertificate(certificatePem);
    return true;
  } catch {
    return false;
  }
}
