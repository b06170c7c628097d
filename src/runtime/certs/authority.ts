/**
 * A certificate authority on EC P-256 that signs server and client certificates.
 * The verifiers that matter are Go's crypto/x509 (API server, kubelet) and OpenSSL (Node): both
 * compare issuer and subject byte by byte and read names only from the SAN.
 */
import 'reflect-metadata';
import { createPrivateKey, createPublicKey, webcrypto, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import * as x509 from '@peculiar/x509';
import { EgressError } from '../../api/error.ts';

/** A certificate and its private key (PKCS #8), both as PEM text. */
export interface KeyPair {
  readonly certificatePem: string;
  readonly keyPem: string;
}

/** A key pair that may sign others. Comes from `createAuthority` or, checked, from `loadAuthority`. */
export type Authority = KeyPair;

/** What a certificate may be used for in TLS. */
export type CertificateUsage = 'server' | 'client';

/** The wish for one new authority. */
export interface AuthorityRequest {
  readonly commonName: string;
  readonly lifetimeDays: number;
  readonly now: Date;
}

/** The wish for one signed certificate. A server needs at least one DNS name or IP address. */
export interface LeafRequest {
  readonly commonName: string;
  readonly organizations?: readonly string[];
  readonly dnsNames?: readonly string[];
  readonly ipAddresses?: readonly string[];
  readonly usages: readonly CertificateUsage[];
  readonly lifetimeDays: number;
  readonly now: Date;
}

const keyAlgorithm = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const signingAlgorithm = { name: 'ECDSA', hash: 'SHA-256' } as const;
const dayMs = 24 * 60 * 60 * 1000;

/** Certificates start five minutes early, so that a verifier whose clock is a little behind accepts them. */
export const backdateMs = 5 * 60 * 1000;

const extendedUsage = {
  server: x509.ExtendedKeyUsage.serverAuth,
  client: x509.ExtendedKeyUsage.clientAuth,
} as const;

/** Returns a new self-signed authority with a fresh key. Two calls never return the same key. */
export async function createAuthority(request: AuthorityRequest): Promise<Authority> {
  const keys = await webcrypto.subtle.generateKey(keyAlgorithm, true, ['sign', 'verify']);
  const { notBefore, notAfter } = validity(request.now, request.lifetimeDays);
  const keyId = await x509.SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned(
    {
      name: distinguishedName(request.commonName, []),
      serialNumber: randomSerial(),
      notBefore,
      notAfter,
      keys,
      signingAlgorithm,
      extensions: [
        // Path length 0: this authority signs leaves only. A stolen leaf can never become a CA.
        new x509.BasicConstraintsExtension(true, 0, true),
        new x509.KeyUsagesExtension(
          x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign | x509.KeyUsageFlags.digitalSignature,
          true,
        ),
        keyId,
        new x509.AuthorityKeyIdentifierExtension(keyId.keyId, false),
      ],
    },
    webcrypto,
  );
  return { certificatePem: pem(certificate), keyPem: await exportKey(keys.privateKey) };
}

/** Returns the authority held in PEM text; throws CERTIFICATE_INVALID when it cannot sign for this certificate. */
export function loadAuthority(pems: KeyPair): Authority {
  const certificate = parseCertificate(pems.certificatePem);
  if (!certificate.ca) throw invalid(`certificate "${certificate.subject}" is not a certificate authority`);
  if (!keyMatches(certificate, pems.keyPem)) {
    throw invalid(`the private key does not belong to certificate "${certificate.subject}"`);
  }
  return { certificatePem: pems.certificatePem, keyPem: pems.keyPem };
}

/** Returns a new certificate signed by the authority. It never outlives the authority. */
export async function issue(authority: Authority, request: LeafRequest): Promise<KeyPair> {
  const names = subjectAlternativeNames(request);
  if (request.usages.length === 0) throw invalid(`certificate "${request.commonName}" needs at least one usage`);
  if (request.usages.includes('server') && names.length === 0) {
    throw invalid(`server certificate "${request.commonName}" needs a DNS name or an IP address`);
  }
  const issuer = new x509.X509Certificate(authority.certificatePem);
  const issuerKeyId = issuer.getExtension(x509.SubjectKeyIdentifierExtension)?.keyId;
  const keys = await webcrypto.subtle.generateKey(keyAlgorithm, true, ['sign', 'verify']);
  const { notBefore, notAfter } = validity(request.now, request.lifetimeDays);
  const certificate = await x509.X509CertificateGenerator.create(
    {
      subject: distinguishedName(request.commonName, request.organizations ?? []),
      // The Name object, not its text: re-encoding the text could choose other string types than the issuer used.
      issuer: issuer.subjectName,
      serialNumber: randomSerial(),
      notBefore: new Date(Math.max(notBefore.getTime(), issuer.notBefore.getTime())),
      notAfter: new Date(Math.min(notAfter.getTime(), issuer.notAfter.getTime())),
      publicKey: keys.publicKey,
      signingKey: await importSigningKey(authority.keyPem),
      signingAlgorithm,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([...new Set(request.usages)].map((usage) => extendedUsage[usage])),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
        ...(issuerKeyId === undefined ? [] : [new x509.AuthorityKeyIdentifierExtension(issuerKeyId, false)]),
        ...(names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names, false)]),
      ],
    },
    webcrypto,
  );
  return { certificatePem: pem(certificate), keyPem: await exportKey(keys.privateKey) };
}

/** Returns the parsed certificate; throws CERTIFICATE_INVALID when the text is not one PEM certificate. */
export function parseCertificate(certificatePem: string): X509Certificate {
  try {
    return new X509Certificate(certificatePem);
  } catch (cause) {
    throw new EgressError('CERTIFICATE_INVALID', 'the text is not a certificate in PEM form', { cause });
  }
}

/** Tells whether the private key belongs to the certificate; false also when the key cannot be read. */
export function keyMatches(certificate: X509Certificate, keyPem: string): boolean {
  try {
    return createPublicKey(createPrivateKey(keyPem)).equals(certificate.publicKey);
  } catch {
    return false;
  }
}

function distinguishedName(commonName: string, organizations: readonly string[]): x509.Name {
  if (commonName === '') throw invalid('a certificate needs a common name');
  // One attribute per RDN: a SET with two values would have to be sorted by its DER bytes.
  // Always UTF8String: given as plain text, the library would read a leading "#" or a backslash as syntax.
  return new x509.Name([
    ...organizations.map((organization) => ({ O: [{ utf8String: organization }] })),
    { CN: [{ utf8String: commonName }] },
  ]);
}

function subjectAlternativeNames(request: LeafRequest): x509.JsonGeneralNames {
  const dnsNames = (request.dnsNames ?? []).map((value) => {
    if (!/^(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i.test(value)) {
      throw invalid(`"${value}" is not a DNS name`);
    }
    return { type: 'dns' as const, value };
  });
  const ipAddresses = (request.ipAddresses ?? []).map((value) => {
    if (isIP(value) === 0 || value.includes('%')) throw invalid(`"${value}" is not an IP address`);
    return { type: 'ip' as const, value };
  });
  return [...dnsNames, ...ipAddresses];
}

function validity(now: Date, lifetimeDays: number): { readonly notBefore: Date; readonly notAfter: Date } {
  if (!(lifetimeDays > 0)) throw invalid(`a lifetime of ${lifetimeDays} days is not allowed, it must be above 0`);
  // X.509 times have whole seconds.
  const start = Math.floor(now.getTime() / 1000) * 1000;
  return { notBefore: new Date(start - backdateMs), notAfter: new Date(start + lifetimeDays * dayMs) };
}

/** 127 random bits; the top bits are fixed so that the number is positive and always 16 bytes long (RFC 5280, 4.1.2.2). */
function randomSerial(): string {
  const bytes = webcrypto.getRandomValues(new Uint8Array(16));
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return Buffer.from(bytes).toString('hex');
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  const der = await webcrypto.subtle.exportKey('pkcs8', key);
  return withNewline(x509.PemConverter.encode(der, 'PRIVATE KEY'));
}

async function importSigningKey(keyPem: string): Promise<webcrypto.CryptoKey> {
  // Node reads PKCS #8 and SEC 1 alike; WebCrypto only takes PKCS #8.
  const der = createPrivateKey(keyPem).export({ type: 'pkcs8', format: 'der' });
  return await webcrypto.subtle.importKey('pkcs8', new Uint8Array(der), keyAlgorithm, false, ['sign']);
}

function pem(certificate: x509.X509Certificate): string {
  return withNewline(certificate.toString('pem'));
}

function withNewline(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}

function invalid(sentence: string): EgressError {
  return new EgressError('CERTIFICATE_INVALID', sentence);
}
