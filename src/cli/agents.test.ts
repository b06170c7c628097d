import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { parseIpv4 } from '../core/ip/index.ts';
import { createKubeClient } from '../runtime/kube/http-client.ts';
import { systemClock } from '../runtime/process/clock.ts';
import { agentsOf, type Question } from './agents.ts';

const agentPod = (name: string, node: string, isReady = true) => ({
  metadata: { name, namespace: 'sallyport' },
  spec: { nodeName: node, containers: [{ ports: [{ name: 'health', containerPort: 8081 }] }] },
  status: { conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }] },
});

/** What agent-a was shown. */
let shown: string | string[] | undefined;

/** An API server that lists four agents, gives tokens for them, and proxies to them. */
const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://server');
  const answer = (status: number, value: object) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  const path = decodeURIComponent(pathname);
  if (path === '/api/v1/namespaces/sallyport/pods') {
    assert.match(searchParams.get('labelSelector') ?? '', /component=agent/);
    const items = [
      agentPod('agent-a', 'a'),
      agentPod('agent-b', 'b', false),
      agentPod('agent-c', 'c'),
      agentPod('agent-d', 'd'),
    ];
    answer(200, { metadata: { resourceVersion: '1' }, items });
  } else if (path === '/api/v1/namespaces/sallyport/serviceaccounts/sallyport-reader/token') {
    answer(201, { status: { token: 'for-agents' } });
  } else if (path === '/api/v1/namespaces/sallyport/pods/agent-a:8081/proxy/kernel') {
    shown = request.headers['x-sallyport-authorization'];
    const [slot, ip] = [Number(searchParams.get('slot')), searchParams.get('ip')];
    const source = { ip, class: '0x25000001', destinations: [], otherwise: { kind: 'slot', slot } };
    answer(200, {
      node: 'a',
      hasTable: true,
      ...(ip === null ? {} : { source }),
      slot: { slot, eip: { ipv4: '10.6.1.1' } },
    });
  } else if (path.includes('agent-c')) answer(200, { node: 'c' });
  else answer(403, { kind: 'Status', reason: 'Forbidden', message: 'pods/proxy is forbidden' });
});

describe('agentsOf', () => {
  before(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(() => server.close());

  const asked = async (question: Question) => {
    // Only a pipe has a string here.
    const { port } = server.address() as AddressInfo;
    const credentials = async () => ({ tls: { isInsecure: false } });
    const access = { server: `http://127.0.0.1:${port}`, namespace: 'default', credentials, forget: () => {} };
    const client = createKubeClient({ access, userAgent: 'test', clock: systemClock, random: () => 0 });
    try {
      return await agentsOf(client, 'sallyport', new AbortController().signal)(question);
    } finally {
      await client.close();
    }
  };
  const sentence = async (node: string): Promise<string> => {
    const answer = await asked({ node, slot: 1 });
    return answer.ok ? 'answered' : answer.sentence;
  };

  it('shows the agent a token of its own, because the API server keeps the other', async () => {
    assert.equal((await asked({ node: 'a', slot: 1 })).ok, true);
    assert.equal(shown, 'Bearer for-agents');
  });

  it('asks the agent of the node about the source and the slot', async () => {
    const ip = parseIpv4('10.244.3.7');
    assert.ok(ip.ok);
    const answer = await asked({ node: 'a', ip: ip.value, slot: 17 });
    assert.deepEqual(answer, {
      ok: true,
      view: {
        node: 'a',
        hasTable: true,
        source: { ip: '10.244.3.7', class: '0x25000001', destinations: [], otherwise: { kind: 'slot', slot: 17 } },
        slot: { slot: 17, eip: { ipv4: '10.6.1.1' } },
      },
    });
  });

  it('says why nobody could be asked', async () => {
    assert.equal(await sentence('b'), 'No agent is ready on node b.');
    assert.equal(await sentence('nowhere'), 'No agent is ready on node nowhere.');
    assert.equal(await sentence('c'), 'This version does not understand the answer of the agent of node c.');
    assert.match(
      await sentence('d'),
      /^Cannot query the agent of node d: .*pods\/proxy is forbidden \(403 Forbidden\)\.$/,
    );
  });
});
