/** The node of one test, and what a test does on it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NetworkDesired } from '../../../core/node/desired.ts';
import type { Programs } from '../../program.ts';
import type { Access } from '../access.ts';
import { createNetwork, type Network, type NetworkActual, type NetworkOutcome } from '../network.ts';
import type { DeviceNames } from '../owned.ts';
import { hostLines, runningClock, usualNames } from './fake-network.ts';

/** A kernel with nothing but its loopback device, for one test. */
export interface World extends AsyncDisposable, Access {}

/** A node as `hostLines` make it. */
export interface Node {
  /** An agent's hand on the network of the node. */
  network(names?: DeviceNames): Network;
  /** Says a command of somebody else: `ip rule del ...`. Rejects when it fails. */
  say(command: string): Promise<void>;
  readonly programs: Programs;
}

/** Declares tests that each get a node of their own. */
export const nodeTests =
  (open: () => Promise<World>) =>
  (title: string, body: (node: Node) => Promise<void>): void => {
    test(title, async () => {
      await using world = await open();
      const { programs, socket } = world;
      const networks: Network[] = [];
      const say = async (command: string): Promise<void> => {
        const { code, stderr } = await programs.run(command.split(' '));
        assert.equal(code, 0, `${command}: ${stderr}`);
        // An agent hears of it by watching.
        for (const one of networks) one.distrust();
      };
      const network = (names = usualNames): Network => {
        const one = createNetwork({ programs, socket, names, clock: runningClock });
        networks.push(one);
        return one;
      };
      for (const line of hostLines) await say(`ip ${line}`);
      await body({ programs, say, network });
    });
  };

/** Applies a value as an agent does. */
export const applied = async (network: Network, desired: NetworkDesired): Promise<NetworkOutcome> => {
  const grown = await network.grow(desired);
  const trimmed = await network.trim(desired);
  return { changed: grown.changed + trimmed.changed, refused: [...grown.refused, ...trimmed.refused] };
};

/** What is there, without what differs between two kernels that hold the same. */
export const essence = (actual: NetworkActual): object => {
  const sorted = <T>(list: readonly T[]): string[] => list.map((entry) => JSON.stringify(entry)).toSorted();
  return {
    links: sorted(
      actual.links.map(({ name, role, isUp, mtu, mac, alias, vxlan }) => ({
        name,
        isUp,
        alias,
        // The kernel makes up the MAC address of an EIP device.
        ...(role === 'tunnel' ? { mtu, mac, vxlan } : {}),
      })),
    ),
    addresses: sorted(
      actual.addresses.map(({ device, ip, prefixLength, isDeprecated }) => ({
        device,
        ip,
        prefixLength,
        isDeprecated,
      })),
    ),
    rules: sorted(actual.rules),
    routes: sorted(
      actual.routes.map(({ table, family, destination, via, device }) => ({ table, family, destination, via, device })),
    ),
    ways: sorted(actual.ways),
    neighbours: sorted(actual.neighbours.map(({ device, ip, mac }) => ({ device, ip, mac }))),
    forwardings: sorted(actual.forwardings.map(({ device, mac, to }) => ({ device, mac, to }))),
    proxies: sorted(actual.proxies),
  };
};
