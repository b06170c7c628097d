/** The settings module against Linux. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stateFile } from '../../src/dataplane/state-file.ts';
import { type Files, filesBelow } from '../../src/dataplane/sysctl/files.ts';
import { createSysctls } from '../../src/dataplane/sysctl/sysctls.ts';
import { settings, sysctlConformance } from '../../src/dataplane/sysctl/testing/conformance.ts';
import { inNamespace } from './enter.ts';
import { openNamespace } from './namespace.ts';

let worlds = 0;

sysctlConformance('Linux', async () => {
  worlds += 1;
  const namespace = await openNamespace(`sysctls${worlds}`);
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-sysctls-'));
  const machine = filesBelow('/proc/sys');
  // What /proc/sys/net shows depends on the namespace of its reader.
  const files: Files = {
    read: (path) => inNamespace(namespace.name, () => machine.read(path)),
    write: (path, text) => inNamespace(namespace.name, () => machine.write(path, text)),
  };
  for (const path of settings) files.write(path, '0');
  return {
    open: () => createSysctls({ files, memory: stateFile(join(folder, 'state', 'sysctls.json')) }),
    read: (path) => files.read(path)?.trim(),
    write: (path, value) => files.write(path, value),
    [Symbol.asyncDispose]: async () => {
      await rm(folder, { recursive: true });
      await namespace.close();
    },
  };
});
