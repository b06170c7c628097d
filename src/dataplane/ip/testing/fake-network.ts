/** A Network over a fake kernel: the code of the real one, on a machine that is not there. */

import type { Timers } from '../../timers.ts';
import { createNetwork, type Network } from '../network.ts';
import type { DeviceNames } from '../owned.ts';
import { createFakeKernel, type FakeKernel } from './fake-kernel.ts';

export interface FakeNetwork extends Network {
  readonly kernel: FakeKernel;
}

export interface FakeNetworkOptions {
  readonly names?: DeviceNames;
  readonly clock?: Timers;
  /** Kinds of devices that the kernel does not know, or `gbp`. */
  readonly lacks?: readonly string[];
}

/** The devices as the configuration calls them by default. */
export const usualNames: DeviceNames = { tunnel: 'egress.vxlan', holder: 'egw-eip' };

/** A clock on which nothing ever happens. */
const stoppedClock: Timers = { after: () => () => {} };

/** The clock of the machine. */
export const runningClock: Timers = {
  after: (delayMs, callback) => {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Lines that make a node with one interface, two addresses on it and a way out for both families. */
export const hostLines: readonly string[] = [
  'link add eth0 type veth peer name peer0',
  'link set eth0 up',
  'link set peer0 up',
  'addr add 10.6.0.11/24 dev eth0',
  'addr add fd06::11/64 dev eth0 nodad',
  'route add default via 10.6.0.1 dev eth0',
  'route add default via fd06::1 dev eth0',
];

/** The node that `hostLines` make, with nothing of ours on it yet. */
export const createFakeNetwork = (options: FakeNetworkOptions = {}): FakeNetwork => {
  const { names = usualNames, clock = stoppedClock, lacks = [] } = options;
  const kernel = createFakeKernel(lacks);
  for (const line of hostLines) kernel.say(`ip ${line}`);
  return { ...createNetwork({ programs: kernel.programs, names, clock }), kernel };
};
