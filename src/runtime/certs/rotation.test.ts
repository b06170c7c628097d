import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAuthority, parseCertificate } from './authority.ts';
import { type CertificatePlan, type CertificateState, caBundle, decide, renewalTime, takeStep } from './rotation.ts';

const hourMs = 60 * 60 * 1000;
const dayMs = 24 * hourMs;
const plan: CertificatePlan = {
  commonName: 'sallyport-webhook',
  dnsNames: ['sallyport.kube-system.svc'],
  authorityLifetimeDays: 900,
  leafLifetimeDays: 90,
  trustLeadMs: dayMs,
};
const empty: CertificateState = { retired: [] };

async function settle(start: CertificateState, now: Date, wanted = plan) {
  const kinds: string[] = [];
  let state = start;
  for (let step = decide(state, wanted, now); step.kind !== 'nothing'; step = decide(state, wanted, now)) {
    assert.ok(kinds.length < 8, `does not come to rest: ${kinds.join(', ')}`);
    state = await takeStep(state, step, wanted, now);
    kinds.push(step.kind);
  }
  const last = decide(state, wanted, now);
  assert.ok(last.kind === 'nothing');
  return { state, kinds, until: last.until };
}

/** Whether a client that knows this bundle accepts this leaf at this time. */
function accepts(bundlePem: string, leafPem: string, now: Date): boolean {
  const leaf = parseCertificate(leafPem);
  const blocks = bundlePem.split(/(?<=-----END CERTIFICATE-----\n)/).filter((block) => block !== '');
  return (
    leaf.validFromDate <= now &&
    now < leaf.validToDate &&
    blocks
      .map((block) => parseCertificate(block))
      .some(
        (ca) => leaf.checkIssued(ca) && leaf.verify(ca.publicKey) && ca.validFromDate <= now && now < ca.validToDate,
      )
  );
}

test('from nothing: an authority and a leaf, then rest until two thirds of the shorter life', async () => {
  const now = new Date('2026-01-01T00:00:00Z');
  const { state, kinds, until } = await settle(empty, now);
  assert.deepEqual(kinds, ['create-signer', 'renew-leaf']);
  assert.deepEqual(until, new Date(now.getTime() + 60 * dayMs));
  assert.ok(accepts(caBundle(state), state.leaf?.certificatePem ?? '', now));
});

test('the leaf is renewed at two thirds of its life and not before', async () => {
  const now = new Date('2026-01-01T00:00:00Z');
  const { state, until } = await settle(empty, now);
  assert.deepEqual((await settle(state, new Date(until.getTime() - 1000))).kinds, []);
  const renewed = await settle(state, until);
  assert.deepEqual(renewed.kinds, ['renew-leaf']);
  assert.equal(renewed.state.signer, state.signer);
});

test('a new authority is trusted first, signs a day later, and the old one stays trusted until it runs out', async () => {
  const now = new Date('2026-01-01T00:00:00Z');
  const { state } = await settle(empty, now);
  const two = new Date(now.getTime() + 600 * dayMs);
  const introduced = await settle(state, two);
  assert.ok(introduced.kinds.includes('create-next'));
  assert.equal(introduced.state.signer, state.signer, 'the old one still signs');
  assert.equal(caBundle(introduced.state).match(/BEGIN/g)?.length, 2);
  const promoted = await settle(introduced.state, new Date(two.getTime() + dayMs));
  assert.deepEqual(promoted.kinds, ['promote-next']);
  assert.equal(promoted.state.signer, introduced.state.next);
  assert.equal(caBundle(promoted.state).match(/BEGIN/g)?.length, 2);
  const end = await settle(promoted.state, new Date(now.getTime() + 900 * dayMs));
  assert.ok(end.kinds.includes('drop-expired'));
  assert.equal(caBundle(end.state).match(/BEGIN/g)?.length, 1);
});

test('a leaf is replaced when a name is missing, its key does not fit, or a stranger signed it', async () => {
  const now = new Date('2026-01-01T00:00:00Z');
  const { state } = await settle(empty, now);
  const wider = {
    ...plan,
    dnsNames: [...plan.dnsNames, 'sallyport.kube-system.svc.cluster.local'],
    ipAddresses: ['::1'],
  };
  const { state: stranger } = await settle(empty, now);
  assert.ok(state.leaf && state.signer && stranger.leaf);
  const cases: readonly [CertificateState, CertificatePlan, RegExp][] = [
    [state, wider, /lacks a name/],
    [{ ...state, leaf: { ...state.leaf, keyPem: state.signer.keyPem } }, plan, /key does not fit/],
    [{ ...state, leaf: stranger.leaf }, plan, /no trusted authority/],
  ];
  for (const [broken, wanted, reason] of cases) {
    const step = decide(broken, wanted, now);
    assert.ok(step.kind === 'renew-leaf');
    assert.match(step.reason, reason);
    assert.deepEqual((await settle(broken, now, wanted)).kinds, ['renew-leaf']);
  }
});

test('a signer whose key was lost is replaced, and what it has signed stays good', async () => {
  const now = new Date('2026-01-01T00:00:00Z');
  const { state } = await settle(empty, now);
  assert.ok(state.signer && state.leaf);
  const broken = { ...state, signer: { ...state.signer, keyPem: 'lost' } };
  const healed = await settle(broken, now);
  assert.deepEqual(healed.kinds, ['create-signer']);
  assert.ok(accepts(caBundle(healed.state), state.leaf.certificatePem, now));
});

test('after a pause of many years everything is made anew', async () => {
  const { state } = await settle(empty, new Date('2026-01-01T00:00:00Z'));
  const now = new Date('2046-01-01T00:00:00Z');
  const { state: fresh } = await settle(state, now);
  assert.ok(accepts(caBundle(fresh), fresh.leaf?.certificatePem ?? '', now));
  assert.equal(caBundle(fresh).match(/BEGIN/g)?.length, 1);
});

test('renewal is at two thirds of the life as it was asked for', async () => {
  const now = new Date('2026-01-01T00:00:00Z');
  const { certificatePem } = await createAuthority({ commonName: 'x', lifetimeDays: 30, now });
  assert.deepEqual(renewalTime(parseCertificate(certificatePem)), new Date('2026-01-21T00:00:00Z'));
});

test('simulation of six years: lagging clients accept lagging servers at every look', async () => {
  const start = new Date('2026-01-01T00:00:00Z').getTime();
  // A client or server may be this far behind the Secret.
  const lagMs = 20 * hourMs;
  const counts = new Map<string, number>();
  let history: readonly { readonly atMs: number; readonly bundle: string; readonly leaf: string }[] = [];
  let state = empty;
  let looks = 0;
  for (let atMs = start; atMs < start + 6 * 365 * dayMs; ) {
    const now = new Date(atMs);
    const { state: settled, kinds, until } = await settle(state, now);
    state = settled;
    looks += 1;
    for (const kind of kinds) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    history = [
      ...history.filter((entry) => entry.atMs >= atMs - lagMs),
      { atMs, bundle: caBundle(state), leaf: state.leaf?.certificatePem ?? '' },
    ];
    const pairs = history.flatMap(({ bundle }) => history.map(({ leaf }) => ({ bundle, leaf })));
    const different = new Map(pairs.map((pair) => [`${pair.bundle}${pair.leaf}`, pair]));
    for (const { bundle, leaf } of different.values()) {
      assert.ok(accepts(bundle, leaf, now), `refused at ${now.toISOString()}`);
    }
    // Every ten hours for two days before and after each change; in between nothing happens.
    atMs = different.size === 1 ? Math.max(atMs + 10 * hourMs, until.getTime() - 2 * dayMs) : atMs + 10 * hourMs;
  }
  assert.ok(looks > 200, `${looks} looks`);
  assert.equal(counts.get('create-signer'), 1);
  assert.equal(counts.get('create-next'), 3);
  assert.equal(counts.get('promote-next'), 3);
  assert.ok((counts.get('renew-leaf') ?? 0) >= 36);
});
