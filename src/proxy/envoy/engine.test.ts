/** What can be said of the engine without Envoy; the rest is in test/kernel/proxy-envoy.test.ts. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createLog } from '../../runtime/process/log.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { fastClock } from '../../runtime/testing/fast-clock.ts';
import { ruleSet, tcpRule } from '../testing/rules.ts';
import { createEnvoy } from './engine.ts';

const folder = mkdtempSync(join(tmpdir(), 'sallyport-envoy-'));
after(() => rmSync(folder, { recursive: true }));

describe('an Envoy that cannot be started', () => {
  it('is tried again and again, and apply says that it does not answer', async () => {
    const told: string[] = [];
    const log = createLog({ process: 'test', level: 'error', destination: { write: (line) => void told.push(line) } });
    writeFileSync(join(folder, 'listeners.json'), 'left by an earlier process');
    const engine = createEnvoy({
      program: join(folder, 'absent'),
      folder,
      accessLog: () => {},
      log,
      clock: fastClock(20),
    });
    const stop = new AbortController();
    const running = engine.run(stop.signal);
    await assert.rejects(engine.apply(ruleSet(tcpRule(4000, ['203.0.113.1'], 1))), {
      code: 'ENGINE_FAILED',
      message: /^Envoy does not answer: /,
    });
    await assert.rejects(engine.read(), { code: 'ENGINE_FAILED' });
    await eventually('it to be tried again', () => told.length > 1);
    stop.abort();
    await running;
    assert.match(told[0] ?? '', /envoy ended \(spawn .*absent ENOENT\); it is started again/);
    // What an earlier process served is not served by this one before it was told to.
    assert.deepEqual(JSON.parse(readFileSync(join(folder, 'listeners.json'), 'utf8')), {
      version_info: '0',
      resources: [],
    });
  });
});
