import assert from 'node:assert/strict';
import { test } from 'node:test';
import { egressObject, planOf, proxyObject } from '../testing/proxies.ts';

const limitsOf = (engine: string, shape: Parameters<typeof egressObject>[1]) =>
  planOf({
    proxies: [proxyObject('bcs-system/egress-controller', { engine })],
    egresses: [egressObject('shop/web', shape)],
  }).egresses.get('shop/web')?.limits;

const plain = { name: 'web', host: 'web.example.com' };
const tls = { name: 'pay', host: 'pay.example.com', tls: true };
const tcp = { name: 'db', sourceport: 3306, destport: 3306, ips: 'db.example.com' };

test('an object says what its engine does not offer to the clients of its rules', () => {
  assert.equal(limitsOf('envoy', { tcp: [tcp] }), undefined);
  assert.equal(limitsOf('nginx', { tcp: [tcp] }), undefined);
  const [tunnels, requests] = [limitsOf('envoy', { http: [tls] }), limitsOf('envoy', { http: [plain] })];
  assert.equal(tunnels?.reason, 'ClientsLimited');
  assert.match(
    tunnels?.sentence ?? '',
    /runs envoy, with which a tunnel ends when its client has ended its own side\. Where/,
  );
  assert.match(requests?.sentence ?? '', /http:\/\/host\?query\) gets 404\. Where/);
  assert.equal(limitsOf('nginx', { http: [tls, plain] })?.reason, 'ConnectNotOffered');
  assert.match(
    limitsOf('nginx', { http: [tls, plain] })?.sentence ?? '',
    /do not reach pay\. Besides, logins .*trailers/,
  );
  assert.doesNotMatch(limitsOf('nginx', { http: [tls] })?.sentence ?? '', /Besides/);
  const onNginx = limitsOf('nginx', { http: [plain] });
  assert.equal(onNginx?.reason, 'ClientsLimited');
  for (const word of ['NTLM', 'trailers', 'Expect', '502']) assert.match(onNginx?.sentence ?? '', new RegExp(word));
});
