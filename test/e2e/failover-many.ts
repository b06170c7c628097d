/**
 * Hundreds of policies with an EIP each are created at once. That is work for every agent and no reason for an EIP to change hands: neither
 * for one of the many, nor for that of a policy that was there before.
 */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { z } from 'zod';
import { until } from '../../lab/host/wait.ts';
import { type FailoverWorld, type Trial, told } from './failover-world.ts';

const count = 300;
const limitMs = 120_000;
const namespace = 'default';
const label = { crowd: 'many' };

const listing = z.object({
  items: z.array(
    z.object({
      status: z
        .object({
          epoch: z.number().default(0),
          conditions: z.array(z.object({ type: z.string(), status: z.string() })).default([]),
        })
        .default({ epoch: 0, conditions: [] }),
    }),
  ),
});

const policyOf = (number: number) => ({
  apiVersion: 'egressgateway.spidernet.io/v1beta1',
  kind: 'EgressPolicy',
  metadata: { name: `many-${number}`, namespace, labels: label },
  spec: {
    egressGatewayName: 'many',
    egressIP: { allocatorPolicy: 'rr' },
    appliedTo: { podSelector: { matchLabels: { crowd: `many-${number}` } } },
  },
});

/** `tell` prints what new connections suffered, as they are judged by their own tests. */
export const describeMany = (
  worldOf: () => FailoverWorld,
  tell: (context: TestContext, trial: Trial) => void,
): void => {
  describe('many EIPs at once', () => {
    test(`${count} policies with an EIP each are created together: no EIP moves`, async (context) => {
      const world = worldOf();
      const { egress, lab } = world;
      // Nobody outside asks for them, so that they need not be in the network of the nodes.
      // A node was lost a moment ago, and the webhooks may have been on it.
      await until({ what: 'a gateway for many', limitMs: 60_000, everyMs: 1_000 }, async () => {
        await egress.gateway('many', { ipv4: ['10.78.0.1-10.78.1.44'], ipv6: ['fd78::1-fd78::12c'] });
        return true;
      });
      const shown = async () => {
        const args = ['-n', namespace, 'get', 'egresspolicies', '-l', 'crowd=many', '-o', 'json'];
        return listing.parse(JSON.parse(await lab.kubectl(args))).items.map(({ status }) => status);
      };
      let left = count;
      const explain = () => `${left} are not`;
      const trial = await world.during(
        () => lab.apply(...Array.from({ length: count }, (_, number) => policyOf(number))),
        () =>
          until({ what: 'all policies in force', limitMs, everyMs: 1_000, explain }, async () => {
            const inForce = (await shown()).filter(({ conditions }) =>
              conditions.some(({ type, status }) => type === 'Programmed' && status === 'True'),
            );
            left = count - inForce.length;
            return left === 0;
          }),
      );
      tell(context, trial);
      assert.deepEqual(
        (await shown()).filter(({ epoch }) => epoch > 1),
        [],
        'nobody has taken one over',
      );
      assert.deepEqual(told(trial).handOvers, [], 'nor that of a policy that was there before');
      await lab.kubectl(['-n', namespace, 'delete', 'egresspolicies', '-l', 'crowd=many', '--timeout=180s']);
      await lab.kubectl(['delete', 'egressgateway', 'many', '--timeout=180s']);
    });
  });
};
