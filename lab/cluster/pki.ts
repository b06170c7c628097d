import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Authority, createAuthority, issue, type LeafRequest } from '../../src/runtime/certs/authority.ts';

/** Where the certificates of a cluster are: files of one folder. */
export interface PkiFiles {
  readonly folder: string;
  /** Path of `NAME.crt`. */
  certificate(name: string): string;
  /** Path of `NAME.key`. */
  key(name: string): string;
  /** Path of the kubeconfig that was written for a client. */
  kubeconfig(name: string): string;
}

/** The certificates of a cluster that is being made: new ones can be signed. */
export interface Pki extends PkiFiles {
  readonly authority: Authority;
}

const lifetimeDays = 30;

/** The files of a folder, whether they exist or not. */
export function pkiFiles(folder: string): PkiFiles {
  return {
    folder,
    certificate: (name) => join(folder, `${name}.crt`),
    key: (name) => join(folder, `${name}.key`),
    kubeconfig: (name) => join(folder, `${name}.kubeconfig`),
  };
}

/** Makes the authority and the service-account keys of a new cluster. */
export async function createPki(folder: string): Promise<Pki> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const authority = await createAuthority({ commonName: 'sallyport-lab', lifetimeDays, now: new Date() });
  const pki: Pki = { ...pkiFiles(folder), authority };
  writePair(pki, 'ca', authority);
  const serviceAccounts = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  writeSecret(join(folder, 'service-accounts.pub'), serviceAccounts.publicKey);
  writeSecret(join(folder, 'service-accounts.key'), serviceAccounts.privateKey);
  return pki;
}

/** Signs a serving certificate and writes it as NAME.crt and NAME.key. */
export async function writeServer(pki: Pki, name: string, names: Pick<LeafRequest, 'dnsNames' | 'ipAddresses'>) {
  writePair(
    pki,
    name,
    await issue(pki.authority, { commonName: name, ...names, usages: ['server'], lifetimeDays, now: new Date() }),
  );
}

/** Signs a client certificate and writes it, with a kubeconfig for `server`. */
export async function writeClient(
  pki: Pki,
  name: string,
  user: { readonly commonName: string; readonly organizations?: readonly string[] },
  server: string,
): Promise<void> {
  writePair(pki, name, await issue(pki.authority, { ...user, usages: ['client'], lifetimeDays, now: new Date() }));
  writeKubeconfig(pki, name, pki.kubeconfig(name), server);
}

/** Writes a kubeconfig for a client that has a certificate already. JSON is YAML: no escaping to think about. */
export function writeKubeconfig(pki: PkiFiles, client: string, file: string, server: string): void {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'lab', cluster: { server, 'certificate-authority': pki.certificate('ca') } }],
    users: [{ name: client, user: { 'client-certificate': pki.certificate(client), 'client-key': pki.key(client) } }],
    contexts: [{ name: 'lab', context: { cluster: 'lab', user: client } }],
    'current-context': 'lab',
  };
  writeSecret(file, `${JSON.stringify(config, null, 2)}\n`);
}

function writePair(
  pki: PkiFiles,
  name: string,
  pair: { readonly certificatePem: string; readonly keyPem: string },
): void {
  writeSecret(pki.certificate(name), pair.certificatePem);
  writeSecret(pki.key(name), pair.keyPem);
}

function writeSecret(file: string, text: string): void {
  writeFileSync(file, text, { mode: 0o600 });
}
