/** The conntrack module against Linux. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Ip } from '../../src/core/ip/index.ts';
import { markText, slotMark } from '../../src/core/node/numbers.ts';
import { createConntrack } from '../../src/dataplane/conntrack/conntrack.ts';
import { createCut } from '../../src/dataplane/conntrack/cut.ts';
import { createDropStaleConnections } from '../../src/dataplane/conntrack/stale-connections.ts';
import { conntrackConformance } from '../../src/dataplane/conntrack/testing/conformance.ts';
import { loadLibc } from '../../src/dataplane/libc.ts';
import { stateFile } from '../../src/dataplane/state-file.ts';
import { inNamespace } from './enter.ts';
import { openNamespace } from './namespace.ts';

let worlds = 0;

conntrackConformance('Linux', async () => {
  worlds += 1;
  const namespace = await openNamespace(`ct${worlds}`);
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-conntrack-'));
  const path = join(folder, 'forget');
  const libc = await loadLibc();
  const [forgetStrays, cut] = [createDropStaleConnections(libc), createCut(libc)];
  let port = 1000;
  const leaveWith = async (eip: Ip, mark = 0, state: readonly string[] = []): Promise<void> => {
    port += 1;
    const [from, to] = eip.includes(':') ? ['fd44::1', '2001:db8::1'] : ['10.244.1.1', '192.0.2.1'];
    const flow = `-s ${from} -d ${to} -n ${eip} -p udp --sport ${port} --dport 53 -t 600`;
    // The mark comes last: the program writes the state over it.
    await namespace.must('conntrack', '-I', ...flow.split(' '), ...state, '-m', markText(mark));
  };
  return {
    conntrack: createConntrack({
      programs: namespace.programs,
      commands: { ...stateFile(path), path },
      forgetStrays: (turned) => inNamespace(namespace.name, () => forgetStrays(turned)),
      cut: (cutOf) => inNamespace(namespace.name, () => cut(cutOf)),
      // The files of /proc show the namespace of their reader.
      readProc: (file) => namespace.must('cat', `/proc/${file}`),
    }),
    connect: async (slot) => {
      const mark = slot === undefined ? '0x0' : markText(slotMark(slot));
      for (const [from, to] of [
        ['10.244.1.1', '192.0.2.1'],
        ['fd44::1', '2001:db8::1'],
      ] as const) {
        port += 1;
        const flow = `-s ${from} -d ${to} -p udp --sport ${port} --dport 53 -t 600 -m ${mark}`;
        await namespace.must('conntrack', '-I', ...flow.split(' '));
      }
    },
    translate: (eip) => leaveWith(eip),
    redirect: (slot, eip, state) =>
      leaveWith(eip, slotMark(slot), state === 'talked' ? ['-u', 'SEEN_REPLY,ASSURED'] : []),
    open: async (source, destination, mark) => {
      port += 1;
      // To a Service, so that who answers is not who was asked.
      const service = source.includes(':') ? 'fd45::53' : '10.96.0.53';
      const flow = `-s ${source} -d ${service} -g ${destination} -p udp --sport ${port} --dport 53 -t 600 -m ${mark}`;
      await namespace.must('conntrack', '-I', ...flow.split(' '));
    },
    count: async () => Number(await namespace.must('conntrack', '-C')),
    [Symbol.asyncDispose]: async () => {
      await rm(folder, { recursive: true });
      await namespace.close();
    },
  };
});
