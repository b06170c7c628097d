import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ManualClock } from '../process/clock.ts';
import { createLog } from '../process/log.ts';
import type { ConfigFs } from './file.ts';
import { openConfig } from './source.ts';

/** A configuration from a text that a test changes. */
const opened = async (text: string) => {
  const file = { text, onChange: (): void => undefined };
  const fs: ConfigFs = {
    readText: async () => file.text,
    watchFolder: (_, onChange) => {
      file.onChange = onChange;
      return () => undefined;
    },
  };
  const clock = new ManualClock();
  const config = await openConfig('config.yaml', { clock, fs, log: createLog({ process: 'test', level: 'silent' }) });
  const stop = new AbortController();
  const ended = config.run(stop.signal);
  await clock.advance(1);
  return {
    config,
    async edit(next: string) {
      file.text = next;
      file.onChange();
      await clock.advance(60_000);
    },
    async end() {
      stop.abort();
      await ended;
    },
  };
};

describe('openConfig', () => {
  it('gives the same value as long as the file stays: a new one at every read made planners forget all they knew', async () => {
    const { config, edit, end } = await opened('feature:\n  maxNumberEndpointPerSlice: 50\n');
    const first = config.current;
    assert.equal(config.current, first);
    await edit('feature:\n  maxNumberEndpointPerSlice: 60\n');
    assert.equal(config.current.feature.maxNumberEndpointPerSlice, 60);
    assert.equal(config.current, config.current);
    assert.notEqual(config.current, first);
    await end();
  });

  it('keeps the families of the start', async () => {
    const { config, edit, end } = await opened('feature:\n  enableIPv6: false\n');
    await edit('feature:\n  enableIPv6: true\n  maxNumberEndpointPerSlice: 60\n');
    assert.deepEqual(
      [config.current.feature.enableIPv6, config.current.feature.maxNumberEndpointPerSlice],
      [false, 60],
    );
    await end();
  });

  it('gives the defaults without a file', async () => {
    const config = await openConfig(undefined, {
      clock: new ManualClock(),
      log: createLog({ process: 'test', level: 'silent' }),
    });
    assert.equal(config.current, config.current);
    assert.equal(config.current.feature.enableIPv4, true);
  });
});
