import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryStateFile } from '../state-file.ts';
import { settings, sysctlConformance } from './testing/conformance.ts';
import { createFakeSysctls } from './testing/fake-sysctls.ts';

sysctlConformance('fake', async () => {
  const memory = memoryStateFile();
  const values = new Map<string, string>(settings.map((path) => [path, '0']));
  return {
    open: () => createFakeSysctls({ settings: values, memory }),
    read: (path) => values.get(path),
    write: (path, value) => void values.set(path, value),
    [Symbol.asyncDispose]: async () => {},
  };
});

const path = 'net/ipv4/conf/eth0/arp_ignore';

test('a setting that may not be written is told, and put right when it may', async () => {
  const sysctls = createFakeSysctls();
  sysctls.locked.add(path);
  const { refused } = await sysctls.apply(new Map([[path, '1']]));
  assert.match(refused[0]?.message ?? '', /read-only/);
  sysctls.locked.clear();
  assert.deepEqual(await sysctls.apply(new Map([[path, '1']])), { changed: [path], refused: [] });
});

test('the value from before is on record before the setting is changed', async () => {
  const memory = memoryStateFile();
  const broken = { ...memory, write: async () => Promise.reject(new Error('ENOSPC: no space left on device')) };
  const sysctls = createFakeSysctls({ memory: broken });
  const { refused } = await sysctls.apply(new Map([[path, '1']]));
  assert.match(refused[0]?.message ?? '', /ENOSPC/);
  assert.equal(sysctls.settings.get(path), undefined, 'it must not be changed');
});

test('a record that cannot be read is as good as none', async () => {
  const memory = memoryStateFile();
  for (const text of ['{', 'null', '[]', `{"${path}": 1}`, `{"${path}": {"before": 1}}`]) {
    await memory.write(text);
    const sysctls = createFakeSysctls({ memory });
    assert.deepEqual(await sysctls.apply(new Map([[path, '1']])), { changed: [path], refused: [] }, text);
  }
});

test('the record reads well', async () => {
  const memory = memoryStateFile();
  await createFakeSysctls({ memory }).apply(new Map([[path, '1']]));
  assert.equal(await memory.read(), `{\n  "${path}": {\n    "before": "0",\n    "ours": "1"\n  }\n}\n`);
});
