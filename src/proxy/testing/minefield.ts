/** Minefield: allowed servers among others that must never be reached, and how a probe of them is judged. */
import assert from 'node:assert/strict';
import { proxyPorts } from '../../core/proxy/served.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { type Bed, inside, outside } from './bed.ts';
import { type HttpAnswer, proxyAddress } from './client.ts';
import type { Scenario } from './conformance.ts';
import {
  type OutsideHttpServer,
  type OutsideServer,
  openHttpServer,
  openHttpsServer,
  openTcpServer,
} from './outside.ts';
import { httpRule, ruleSet, tcpRule } from './rules.ts';

/** A port on which the database rule listens; its name is under the wildcard too. */
export const DATABASE = 4100;

export interface Minefield extends AsyncDisposable {
  /** Servers of `allowed.test` and of what tests point `*.wild.test` at. */
  readonly plain: OutsideHttpServer;
  readonly tls: OutsideHttpServer;
  /** Asserts that none of the other servers was reached. */
  assertUntouched(what: string): void;
  /**
   * Sends something that must not get through: nothing that no rule names may be reached, the answer may not come from a
   * server, and it must be counted and logged.
   */
  refuses(what: string, send: () => Promise<HttpAnswer | undefined>): Promise<HttpAnswer | undefined>;
  /** Sends something that is refused, or that reaches the allowed server and is seen there as a request for that server. */
  refusesOrCleans(what: string, send: () => Promise<HttpAnswer | undefined>): Promise<void>;
}

const certified = ['allowed.test', '*.wild.test', 'forbidden.test'];
const others = [...inside, proxyAddress, '127.0.0.1', '::1'];

/** Opens all servers and makes the rules live. */
export const openMinefield = async (bed: Bed): Promise<Minefield> => {
  const certificate = await bed.certificateFor(...certified);
  const plain = await openHttpServer(outside.one, 80);
  const tls = await openHttpsServer(outside.one, 443, certificate);
  const database = await openTcpServer(outside.one, 5432);
  const mines: OutsideServer[] = [
    await openHttpServer(outside.two, 80),
    await openHttpsServer(outside.two, 443, certificate),
    await openTcpServer(outside.one, 22),
    await openHttpServer(outside.one, 8080),
  ];
  for (const address of others) {
    mines.push(
      await openHttpServer(address, 80),
      await openTcpServer(address, 443),
      await openTcpServer(address, 5432),
    );
  }
  bed.dns.set('allowed.test', { addresses: [outside.one] });
  bed.dns.set('forbidden.test', { addresses: [outside.two] });
  bed.dns.set('x.wild.test', { addresses: [outside.one] });
  bed.dns.set('db.wild.test', { addresses: [outside.one] });
  await bed.serve(
    ruleSet(
      httpRule('allowed.test'),
      httpRule('allowed.test', { isTls: true }),
      httpRule('*.wild.test'),
      httpRule('*.wild.test', { isTls: true }),
      // Ports of the proxy itself: only the guard keeps a name from leading back to it.
      httpRule('*.wild.test', { destPort: ports.http }),
      httpRule('*.wild.test', { isTls: true, destPort: ports.http }),
      httpRule('*.wild.test', { isTls: true, destPort: ports.tls }),
      tcpRule(DATABASE, 'db.wild.test', 5432),
    ),
  );
  const assertUntouched = (what: string): void => {
    const reached = mines.filter(({ connections }) => connections > 0).map(({ at }) => at);
    assert.deepEqual(reached, [], `${what} reached what no rule names`);
  };
  const refusals = async (): Promise<number> => {
    const { refused } = await bed.engine.read();
    return [...refused.values()].reduce((sum, count) => sum + count, 0);
  };
  const isFromServer = (answer: HttpAnswer | undefined): boolean => answer?.status === 200;
  const refuses: Minefield['refuses'] = async (what, send) => {
    const countedBefore = await refusals();
    const loggedBefore = bed.lines.filter(({ refused }) => refused !== '').length;
    const answer = await send();
    assertUntouched(what);
    assert.ok(!isFromServer(answer), `${what} was let through: ${answer?.body}`);
    await eventually(`${what} is counted`, async () => (await refusals()) > countedBefore);
    await eventually(
      `${what} is logged`,
      () => bed.lines.filter(({ refused }) => refused !== '').length > loggedBefore,
    );
    return answer;
  };
  return {
    plain,
    tls,
    assertUntouched,
    refuses,
    async refusesOrCleans(what, send) {
      const seenBefore = plain.seen.length;
      const answer = await send();
      assertUntouched(what);
      if (!isFromServer(answer)) return;
      const [seen, ...more] = plain.seen.slice(seenBefore);
      assert.deepEqual(more, [], `${what} became more than one request`);
      assert.match(String(seen?.headers.host).toLowerCase(), /^(allowed|x\.wild)\.test\.?(:80)?$/, what);
      assert.match(seen?.url ?? '', /^\//, what);
    },
    async [Symbol.asyncDispose]() {
      for (const server of [plain, tls, database, ...mines]) await server.stop();
    },
  };
};

/** The port of the HTTP proxy and that of TLS. */
export const ports = { http: proxyPorts.http, tls: proxyPorts.tls } as const;

/** Runs with a minefield and looks at the mines once more at the end. */
export const scenario = (
  name: string,
  title: string,
  run: (field: Minefield, bed: Bed) => Promise<void>,
): Scenario => ({
  name,
  title,
  async run(bed) {
    await using field = await openMinefield(bed);
    await run(field, bed);
    field.assertUntouched(title);
  },
});
