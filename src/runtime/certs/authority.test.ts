import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { createAuthority, issue, keyMatches, loadAuthority, parseCertificate } from './authority.ts';

const now = new Date('2026-06-01T12:00:00.750Z');
const authority = await createAuthority({ commonName: 'test-ca', lifetimeDays: 3650, now });

test('an authority is a critical CA with path length 0 that may sign, and signs itself', () => {
  const certificate = parseCertificate(authority.certificatePem);
  assert.equal(certificate.ca, true);
  assert.equal(certificate.subject, 'CN=test-ca');
  assert.ok(certificate.checkIssued(certificate) && certificate.verify(certificate.publicKey));
  const text = certificate.raw.toString('hex');
  // basicConstraints (2.5.29.19), critical, { cA TRUE, pathLen 0 }.
  assert.ok(text.includes('0603551d130101ff040830060101ff020100'));
  // keyUsage (2.5.29.15), critical: digitalSignature, keyCertSign, cRLSign.
  assert.ok(text.includes('0603551d0f0101ff040403020186'));
  assert.equal(certificate.validFromDate.toISOString(), '2026-06-01T11:55:00.000Z');
  assert.equal(certificate.validToDate.toISOString(), '2036-05-29T12:00:00.000Z');
});

test('a leaf carries names, addresses, usages and organisations', async () => {
  const { certificatePem, keyPem } = await issue(authority, {
    commonName: 'system:node:node-a',
    organizations: ['system:nodes', '#2 \\ "quoted", Größe'],
    dnsNames: ['localhost', '*.sallyport.svc'],
    ipAddresses: ['127.0.0.1', '::1', 'fd00::a:1'],
    usages: ['server', 'client', 'server'],
    lifetimeDays: 90,
    now,
  });
  const certificate = parseCertificate(certificatePem);
  assert.equal(certificate.ca, false);
  assert.equal(certificate.issuer, 'CN=test-ca');
  // Node escapes what is special in a name, which shows that it was stored as plain text.
  const organization = String.raw`\#2 \\ \"quoted\"\, Größe`;
  assert.equal(certificate.subject, `O=system:nodes\nO=${organization}\nCN=system:node:node-a`);
  assert.deepEqual(certificate.keyUsage, ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2']);
  for (const name of ['localhost', 'webhook.sallyport.svc']) assert.ok(certificate.checkHost(name), name);
  for (const address of ['127.0.0.1', '::1', 'fd00::a:1']) assert.ok(certificate.checkIP(address), address);
  assert.equal(certificate.checkHost('evil.example'), undefined);
  assert.equal(certificate.checkIP('fd00::a:2'), undefined);
  assert.ok(certificate.checkIssued(parseCertificate(authority.certificatePem)));
  assert.ok(keyMatches(certificate, keyPem));
  assert.ok(!keyMatches(certificate, authority.keyPem));
});

test('serial numbers are positive, 16 bytes long and never the same', async () => {
  const request = { commonName: 'x', usages: ['client'], lifetimeDays: 1, now } as const;
  const leaves = await Promise.all(Array.from({ length: 20 }, () => issue(authority, request)));
  const serials = leaves.map(({ certificatePem }) => new X509Certificate(certificatePem).serialNumber);
  assert.equal(new Set(serials).size, 20);
  for (const serial of serials) assert.match(serial, /^[4-7][0-9A-F]{31}$/);
});

test('a leaf never outlives its authority, nor begins before it', async () => {
  const leaf = await issue(authority, { commonName: 'x', usages: ['client'], lifetimeDays: 9999, now });
  const signer = parseCertificate(authority.certificatePem);
  assert.deepEqual(parseCertificate(leaf.certificatePem).validToDate, signer.validToDate);
  assert.deepEqual(parseCertificate(leaf.certificatePem).validFromDate, signer.validFromDate);
});

test('dates after 2049, which X.509 writes in another form, survive', async () => {
  const late = await createAuthority({ commonName: 'late', lifetimeDays: 3650, now: new Date('2055-01-01T00:00:00Z') });
  assert.equal(parseCertificate(late.certificatePem).validFromDate.toISOString(), '2054-12-31T23:55:00.000Z');
});

test('a loaded authority signs like the one that was saved', async () => {
  const loaded = loadAuthority({ certificatePem: authority.certificatePem, keyPem: authority.keyPem });
  const leaf = await issue(loaded, { commonName: 'x', usages: ['client'], lifetimeDays: 1, now });
  const signer = parseCertificate(authority.certificatePem);
  assert.ok(parseCertificate(leaf.certificatePem).verify(signer.publicKey));
});

test('what cannot sign is refused with one sentence', async () => {
  const other = await createAuthority({ commonName: 'other', lifetimeDays: 1, now });
  const leaf = await issue(authority, { commonName: 'x', usages: ['client'], lifetimeDays: 1, now });
  const cases = [
    [{ ...authority, keyPem: other.keyPem }, /key does not belong/],
    [{ ...authority, keyPem: 'rubbish' }, /key does not belong/],
    [{ ...authority, certificatePem: 'rubbish' }, /not a certificate in PEM form/],
    [leaf, /not a certificate authority/],
  ] as const;
  for (const [pems, message] of cases) {
    assert.throws(() => loadAuthority(pems), { code: 'CERTIFICATE_INVALID', message });
  }
});

test('a bad wish is refused before anything is signed', async () => {
  const good = { commonName: 'x', dnsNames: ['a.example'], usages: ['server'], lifetimeDays: 1, now } as const;
  const cases = [
    [{ ...good, commonName: '' }, /needs a common name/],
    [{ ...good, usages: [] }, /at least one usage/],
    [{ ...good, dnsNames: [] }, /needs a DNS name or an IP address/],
    [{ ...good, dnsNames: ['not a name'] }, /"not a name" is not a DNS name/],
    [{ ...good, ipAddresses: ['010.0.0.1'] }, /"010\.0\.0\.1" is not an IP address/],
    [{ ...good, ipAddresses: ['fe80::1%eth0'] }, /is not an IP address/],
    [{ ...good, lifetimeDays: 0 }, /0 days is not allowed/],
    [{ ...good, lifetimeDays: Number.NaN }, /NaN days is not allowed/],
  ] as const;
  for (const [request, message] of cases) {
    await assert.rejects(issue(authority, request), { code: 'CERTIFICATE_INVALID', message });
  }
});

test('a TLS client that trusts only the authority accepts the leaf, and the server accepts a client certificate', async () => {
  const today = new Date();
  const ca = await createAuthority({ commonName: 'tls-ca', lifetimeDays: 10, now: today });
  const server = await issue(ca, {
    commonName: 'server',
    ipAddresses: ['127.0.0.1'],
    usages: ['server'],
    lifetimeDays: 1,
    now: today,
  });
  const client = await issue(ca, { commonName: 'client', usages: ['client'], lifetimeDays: 1, now: today });
  const listener = createServer({
    cert: server.certificatePem,
    key: server.keyPem,
    ca: ca.certificatePem,
    requestCert: true,
    rejectUnauthorized: true,
  });
  const name = Promise.withResolvers<unknown>();
  listener.on('secureConnection', (socket: TLSSocket) => {
    name.resolve(socket.getPeerCertificate().subject.CN);
    socket.end();
  });
  listener.on('tlsClientError', (error) => name.reject(error));
  await new Promise<void>((resolve) => {
    listener.listen(0, '127.0.0.1', resolve);
  });
  // A TCP server's address is never the path string that the general type allows.
  const { port } = listener.address() as AddressInfo;
  const socket = connect({
    host: '127.0.0.1',
    port,
    ca: ca.certificatePem,
    cert: client.certificatePem,
    key: client.keyPem,
  });
  try {
    assert.equal(await name.promise, 'client');
    assert.equal(socket.authorized, true);
  } finally {
    socket.destroy();
    listener.close();
  }
});
