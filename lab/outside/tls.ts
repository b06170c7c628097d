import { writeFileSync } from 'node:fs';
import { createSecureContext, type SecureContext } from 'node:tls';
import { type Authority, createAuthority, issue } from '../../src/runtime/certs/authority.ts';

const lifetimeDays = 30;

/** Certificates of the outside world: its own authority, and a server for every name that a client asks for. */
export interface OutsideTls {
  contextFor(name: string): Promise<SecureContext>;
}

/** Makes the authority and writes its certificate to a file, for clients to trust. */
export async function createOutsideTls(authorityFile: string): Promise<OutsideTls> {
  const authority = await createAuthority({ commonName: 'outside-of-the-lab', lifetimeDays, now: new Date() });
  const contexts = new Map<string, Promise<SecureContext>>();
  writeFileSync(authorityFile, authority.certificatePem);
  return {
    contextFor(name) {
      const known = contexts.get(name) ?? makeContext(authority, name);
      contexts.set(name, known);
      return known;
    },
  };
}

async function makeContext(authority: Authority, name: string): Promise<SecureContext> {
  const leaf = await issue(authority, {
    commonName: name,
    dnsNames: [name],
    usages: ['server'],
    lifetimeDays,
    now: new Date(),
  });
  return createSecureContext({ cert: leaf.certificatePem, key: leaf.keyPem });
}
