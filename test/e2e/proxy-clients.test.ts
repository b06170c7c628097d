/** Real clients through both engines, from pods: what people run, not what we think that it sends. */
import assert from 'node:assert/strict';
import { realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { silent } from '../../lab/host/progress.ts';
import { until } from '../../lab/host/wait.ts';
import { clientPackages, installPackages } from '../../lab/setup/debian.ts';
import { sitePorts } from './client-sites.ts';
import { type Client, makeSite, proxyClients, site, tcpClients, tunnelClients } from './client-tools.ts';
import { outsideServer, ProxyWorld } from './proxy-world.ts';
import { tellOfLab } from './witness.ts';

const engines = [
  { engine: 'envoy', name: 'main' },
  { engine: 'nginx', name: 'seed' },
] as const;
type Engine = (typeof engines)[number];
const node = process.execPath;
const limitMs = 60_000;
const optionsOf = ({ skip }: Client) => (skip === undefined ? {} : { skip });

describe('real clients of the egress proxy', () => {
  let world: ProxyWorld;
  let folder: string;
  let serverPid = '';
  tellOfLab('e2e-proxy-clients');
  before(async () => {
    await installPackages(silent, Object.keys(clientPackages));
    folder = await makeSite();
    world = await ProxyWorld.start('e2e-proxy-clients', ['agent.enabled=false']);
    world.names({ [site]: outsideServer });
    const server = `${node} ${join(import.meta.dirname, 'client-sites.ts')} ${folder} >/dev/null 2>&1 & echo $!`;
    serverPid = (await world.lab.exec('outside', ['sh', '-c', server])).trim();
    await world.clients({ name: 'client', namespace: 'shop', node: 'worker-1' });
    await Promise.all(
      engines.map(async ({ engine, name }) => {
        await world.controller(name, { engine, minReplicas: 1, maxReplicas: 1 });
        const port = (ruleName: string, sourceport: number) => ({
          name: ruleName,
          sourceport,
          destport: sourceport,
          ips: outsideServer.join(','),
        });
        const tcp = [port('postgres', sitePorts.postgres), port('redis', sitePorts.redis)];
        const plain = { name: 'plain', host: site, destport: sitePorts.plain };
        const tls = [
          { name: 'tls', host: site, tls: true, destport: sitePorts.tls },
          { name: 'tunnel', host: site, tls: true, destport: sitePorts.redis },
        ];
        const http = engine === 'envoy' ? [plain, ...tls] : [plain];
        await world.egress(`shop/${name}`, { controller: { name }, rules: { tcp, http } });
      }),
    );
    for (const { name } of engines) await world.untilState(`shop/${name}`, 'Synced', 120_000);
  });
  after(async () => {
    if (serverPid !== '') process.kill(Number(serverPid));
    await world?.stop();
    if (folder !== undefined) rmSync(folder, { recursive: true });
  });

  /** Runs a client in the pod; without any answer again for a while, as kube-proxy hears of a Service a moment later. */
  const check = async ({ name, argv, prints }: Client, proxy: string): Promise<void> => {
    const variables = ['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY'].map(
      (each) => `${each}=http://${proxy}`,
    );
    const env = ['env', '-i', `PATH=${process.env.PATH}`, 'HOME=/tmp', 'LC_ALL=C', ...variables];
    const run = () => world.inPod('client', ...env, 'timeout', '40', ...argv);
    let said = '';
    await until({ what: `${name} to get its answer`, limitMs, everyMs: 2_000, explain: () => said }, async () => {
      const { code, stdout, stderr } = await run();
      said = `exit code ${code}: ${stdout}${stderr}`;
      return prints.test(stdout + stderr);
    });
  };
  const npm = join(realpathSync('/usr/bin/npm'));
  const proxyOf = ({ name }: Engine): string => `${name}.bcs-system:3128`;

  for (const each of engines) {
    describe(each.engine, () => {
      for (const client of proxyClients('FOLDER', node, npm, proxyOf(each), false)) {
        test(`${client.name}, plain HTTP`, optionsOf(client), () => check(within(client), proxyOf(each)));
      }
      for (const client of tcpClients(`${each.name}-postgres.shop`, `${each.name}-redis.shop`)) {
        test(`${client.name}, a TCP rule`, () => check(client, proxyOf(each)));
      }
      if (each.engine === 'envoy') {
        const clients = [...proxyClients('FOLDER', node, npm, proxyOf(each), true), ...tunnelClients(proxyOf(each))];
        for (const client of clients) {
          test(`${client.name}, CONNECT`, optionsOf(client), () => check(within(client), proxyOf(each)));
        }
      } else {
        test('says of CONNECT which engine offers it', async () => {
          const url = `https://${site}:${sitePorts.tls}/`;
          const { stderr } = await world.inPod('client', 'curl', '-sSvk', '--proxy', `http://${proxyOf(each)}`, url);
          assert.match(stderr, /CONNECT tunnel failed, response 400|HTTP code 400/);
        });
      }
    });
  }
  /** The folder is made when the tests begin, and their names are needed before. */
  const within = (client: Client): Client => ({
    ...client,
    argv: client.argv.map((word) => word.replace('FOLDER', folder)),
  });
});
