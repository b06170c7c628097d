import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiObject } from '../core/project/index.ts';
import { egressObject, proxiesView, proxyObject } from '../core/testing/proxies.ts';
import type { AdmissionRequest } from '../runtime/serve/admission-review.ts';
import { judgeEgress } from './admission.ts';

const db = { name: 'db', sourceport: 3306, destport: 3306, ips: 'db.example.com' };
const other = { name: 'other', sourceport: 5432, destport: 5432, ips: '198.51.100.1' };
const world = proxiesView({
  egresses: [egressObject('a/holder', { at: 9, tcp: [db] })],
  proxies: [proxyObject(), proxyObject('bcs-system/closed', { tenants: [] })],
});

const request = (object: ApiObject, oldObject?: ApiObject): AdmissionRequest => ({
  uid: '1',
  kind: { group: 'bkbcs.tencent.com', version: 'v1alpha1', kind: 'BCSEgress' },
  resource: { group: 'bkbcs.tencent.com', version: 'v1alpha1', resource: 'bcsegresses' },
  namespace: object.metadata.namespace,
  name: object.metadata.name,
  operation: oldObject === undefined ? 'CREATE' : 'UPDATE',
  userInfo: { username: '', groups: [] },
  object,
  oldObject,
  dryRun: false,
});
const reason = (object: ApiObject, oldObject?: ApiObject): string => {
  const verdict = judgeEgress(request(object, oldObject), world);
  return verdict.kind === 'deny' ? verdict.reason : verdict.kind;
};

test('what somebody has is refused, also to an older object', () => {
  assert.equal(reason(egressObject('b/new', { at: 10, tcp: [{ ...db, ips: '198.51.100.1' }] })), 'SourcePortTaken');
  assert.equal(reason(egressObject('b/new', { at: 10, tcp: [{ ...db, sourceport: 1 }] })), 'DomainTaken');
  const before = egressObject('b/older', { at: 1, tcp: [other] });
  assert.equal(
    reason(egressObject('b/older', { at: 1, tcp: [other, { ...db, sourceport: 1 }] }), before),
    'DomainTaken',
  );
});

test('reserved ports, closed proxies and the proxy itself are refused', () => {
  assert.equal(reason(egressObject('b/new', { tcp: [{ ...other, sourceport: 61_000 }] })), 'PortReserved');
  assert.equal(reason(egressObject('b/new', { controller: { name: 'closed' }, tcp: [other] })), 'ClaimNotAllowed');
  assert.equal(reason(egressObject('b/new', { tcp: [{ ...other, ips: '127.0.0.1' }] })), 'AddressForbidden');
});

test('what may still come is allowed, and so is a lost rule that an update leaves alone', () => {
  assert.equal(reason(egressObject('b/new', { controller: { name: 'missing' }, tcp: [other] })), 'allow');
  assert.equal(
    reason(egressObject('a/holder', { at: 9, tcp: [db, other] }), egressObject('a/holder', { at: 9, tcp: [db] })),
    'allow',
  );
  const lost = egressObject('b/lost', { at: 10, tcp: [{ ...db, sourceport: 1 }] });
  assert.equal(reason(egressObject('b/lost', { at: 10, tcp: [{ ...db, sourceport: 1 }, other] }), lost), 'allow');
  assert.equal(reason(egressObject('b/lost', { at: 10, isDeleting: true, tcp: [db] }), lost), 'allow');
});
