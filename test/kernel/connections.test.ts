/** Connections against Linux, and real packets that go on through another gateway node after theirs was copied. */

import type { Connection, ConnectionKey } from '../../src/dataplane/conntrack/connection.ts';
import { protocolOf, widthOf } from '../../src/dataplane/conntrack/connection.ts';
import { createConnections } from '../../src/dataplane/conntrack/connections.ts';
import { connectionsConformance, sample } from '../../src/dataplane/conntrack/testing/connections-conformance.ts';
import { loadLibc } from '../../src/dataplane/libc.ts';
import { inNamespace } from './enter.ts';
import { openNamespace } from './namespace.ts';

let worlds = 0;

connectionsConformance('Linux', async () => {
  worlds += 1;
  const namespace = await openNamespace(`con${worlds}`);
  const libc = await loadLibc();
  const real = createConnections({ libc, timeouts: () => ({ tcp: 600, udp: 60 }) });
  const here = <T>(call: () => T): T => inNamespace(namespace.name, call);
  const flow = (key: ConnectionKey): string[] => {
    const family = widthOf(key) === 4 ? 4 : 6;
    const port = Buffer.from(key, 'latin1').readUInt16BE(1);
    const protocol = protocolOf(key) === 6 ? 'tcp' : 'udp';
    const { pod, outside } = sample[family];
    return `-p ${protocol} -s ${pod} -d ${outside} --sport ${port} --dport 80`.split(' ');
  };
  return {
    connections: {
      list: (visit) => here(() => real.list(visit)),
      put: (connections, own) => here(() => real.put(connections, own)),
      forgetOver: (eips) => here(() => real.forgetOver(eips)),
      watch: () => here(() => real.watch()),
    },
    talk: async ({ key, eipPort, mark }: Connection, kept) => {
      const { eip } = sample[widthOf(key) === 4 ? 4 : 6];
      const translation = kept ? [] : ['--src-nat', `${eip.includes(':') ? `[${eip}]` : eip}:${eipPort}`];
      const status = ['-u', 'SEEN_REPLY,ASSURED', ...(protocolOf(key) === 6 ? ['--state', 'ESTABLISHED'] : [])];
      const rest = ['-t', '600', '-m', String(mark)];
      await namespace.must('conntrack', '-I', ...flow(key), ...translation, ...status, ...rest);
      // A connection of real packets tells of itself again when both sides have spoken.
      await namespace.must('conntrack', '-U', ...flow(key), '-t', '500');
    },
    end: async (key) => {
      await namespace.must('conntrack', '-D', ...flow(key));
    },
    part: async (key) => {
      await namespace.must('conntrack', '-U', ...flow(key), '--state', 'TIME_WAIT');
    },
    read: async (key) => {
      const { code, stdout } = await namespace.programs.run([
        'conntrack',
        '-L',
        '-f',
        `ipv${widthOf(key) === 4 ? 4 : 6}`,
        ...flow(key),
      ]);
      const [, eip, port, mark] = /src=.* src=\S+ dst=(\S+) sport=\d+ dport=(\d+) .*mark=(\d+)/.exec(stdout) ?? [];
      return code === 0 && mark !== undefined ? { mark: Number(mark), leavesAs: `${eip} ${port}` } : undefined;
    },
    [Symbol.asyncDispose]: () => namespace.close(),
  };
});
