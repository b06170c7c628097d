import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Timers } from '../timers.ts';
import { networkDesired } from './testing/desired.ts';
import { createFakeNetwork, usualNames } from './testing/fake-network.ts';
import { concerns } from './watch.ts';

/** A clock that tests move by hand. */
const manualClock = (): Timers & { advance(ms: number): Promise<void> } => {
  let now = 0;
  let timers: readonly { readonly dueMs: number; readonly callback: () => void }[] = [];
  return {
    after: (delayMs, callback) => {
      const timer = { dueMs: now + delayMs, callback };
      timers = [...timers, timer];
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    advance: async (ms) => {
      const until = now + ms;
      // Whatever is due may lead to more that is due.
      for (;;) {
        await setImmediate();
        const next = timers.filter(({ dueMs }) => dueMs <= until).toSorted((a, b) => a.dueMs - b.dueMs)[0];
        if (next === undefined) break;
        now = next.dueMs;
        timers = timers.filter((other) => other !== next);
        next.callback();
      }
      now = until;
    },
  };
};

const watched = () => {
  const clock = manualClock();
  const network = createFakeNetwork({ clock });
  const end = new AbortController();
  let calls = 0;
  const watching = network.watch(() => {
    calls += 1;
  }, end.signal);
  const callsSince = (): number => {
    const counted = calls;
    calls = 0;
    return counted;
  };
  return { clock, network, end, watching, callsSince };
};

describe('watching', () => {
  test('there is a call when the monitor listens, for what happened before', async () => {
    const { clock, end, watching, callsSince } = watched();
    await clock.advance(0);
    assert.equal(callsSince(), 0);
    await clock.advance(1000);
    assert.equal(callsSince(), 1);
    await clock.advance(58_000);
    assert.equal(callsSince(), 0, 'and then silence');
    await clock.advance(1000);
    assert.equal(callsSince(), 1, 'and a look every minute, for what the monitor may have lost');
    end.abort();
    await watching;
  });

  test('a monitor that ends is started again, and both are told', async () => {
    const { clock, network, end, watching, callsSince } = watched();
    await clock.advance(1000);
    callsSince();
    network.kernel.endMonitors();
    await clock.advance(0);
    assert.equal(callsSince(), 1, 'nobody listens now');
    assert.equal(network.kernel.monitors, 0);
    await clock.advance(1000);
    assert.equal(network.kernel.monitors, 1);
    await clock.advance(1000);
    assert.equal(callsSince(), 1, 'something may have happened in between');
    end.abort();
    await watching;
    assert.equal(network.kernel.monitors, 0);
  });

  test('proxy entries, of which nobody tells, are looked at while some are desired', async () => {
    const { clock, network, end, watching, callsSince } = watched();
    await network.grow(networkDesired({ eips: [100] }));
    await clock.advance(5000);
    callsSince();
    network.kernel.say('ip neigh del proxy fd06::100 dev eth0');
    await clock.advance(700);
    assert.equal(callsSince(), 1);
    await network.grow(networkDesired({ eips: [100] }));
    await clock.advance(5000);
    assert.equal(callsSince(), 0);
    end.abort();
    await watching;
  });
});

const lines: readonly (readonly [boolean, string])[] = [
  [true, '4: egress.vxlan: <BROADCAST,MULTICAST> mtu 1450 qdisc noop state DOWN group default'],
  [true, 'Deleted 4: egress.vxlan: <BROADCAST,MULTICAST> mtu 1450 qdisc noop state DOWN group default'],
  [true, '5: egw-eip: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UNKNOWN group default'],
  [true, '3: eth0@if7: <BROADCAST,MULTICAST> mtu 1500 qdisc noqueue state DOWN group default'],
  [false, '9: cali1234@if3: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default'],
  [
    true,
    '4: egress.vxlan    inet 172.31.0.1/16 scope global egress.vxlan\\       valid_lft forever preferred_lft forever',
  ],
  [true, 'Deleted 5: egw-eip    inet6 fd06::100/128 scope global nodad deprecated \\       valid_lft forever'],
  [
    true,
    '8: eth1    inet 10.7.0.1/24 brd 10.7.0.255 scope global eth1\\       valid_lft forever preferred_lft forever',
  ],
  [
    false,
    '9: cali1234    inet6 fe80::ecee:eeff:feee:eeee/64 scope link \\       valid_lft forever preferred_lft forever',
  ],
  [true, '94:\tfrom all fwmark 0x260c0000/0xffff0000 lookup 2612'],
  [true, 'Deleted 93:\tfrom all fwmark 0/0xff000000 goto 95'],
  [false, '32765:\tfrom all fwmark 0x1/0x1 lookup 100'],
  [true, '172.31.0.12 dev egress.vxlan lladdr 66:00:00:00:00:0c PERMANENT '],
  [true, 'Deleted 10.6.0.12 dev egress.vxlan lladdr 66:00:00:00:00:0c NOARP PERMANENT '],
  [false, '10.6.0.1 dev eth0 lladdr 02:42:ac:11:00:02 REACHABLE '],
  [false, '10.244.1.5 dev cali1234  FAILED '],
  [true, 'default via 172.31.0.12 dev egress.vxlan table 2612 onlink '],
  [true, 'Deleted default via fd11::12 dev egress.vxlan table 2700012 metric 1024 onlink pref medium'],
  [true, 'unreachable 192.0.2.0/24 table 2612 '],
  [true, 'Deleted default via 10.6.0.1 dev eth0 '],
  [true, '10.7.0.0/24 dev eth1 proto kernel scope link src 10.7.0.1 '],
  [false, '10.244.1.5 dev cali1234 scope link '],
  [false, '10.244.2.0/24 via 10.6.0.12 dev eth0 proto bird '],
  [false, 'local 10.244.1.1 dev cali1234 table local proto kernel scope host src 10.244.1.1 '],
];

describe('lines of the monitor', () => {
  for (const [isOurs, line] of lines) {
    test(`${isOurs ? 'concerns' : 'passes over'}: ${line.slice(0, 70)}`, () => {
      assert.equal(concerns(line, usualNames, new Set(['eth0'])), isOurs);
    });
  }
});
