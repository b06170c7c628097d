/** Which folder inside a layer may import which: a room imports only rooms that stand before it, so there are no two-way doors. */
import { posix } from 'node:path';
import { importsOf } from './imports.ts';
import type { Offence, SourceFile } from './source-files.ts';

/** The rooms of each layer, each after all that it may import; '.' stands for the files of the layer itself. */
export const rooms: Readonly<Record<string, readonly string[]>> = {
  'src/api': ['ip', '.'],
  'src/core': [
    ...['ip', 'values', 'incremental', 'cluster', 'policies', 'tunnels', 'ownership', 'gateways', 'plan'],
    ...['status', 'slices', 'node', 'explain', 'project', 'proxy'],
  ],
  'src/runtime': ['process', 'kube', 'certs', 'control', 'serve', 'config', 'metrics'],
  'src/dataplane': ['.', 'netlink', 'nft', 'gate', 'announce', 'conntrack', 'ip', 'sysctl'],
  'src/controller': [
    ...['loop', 'membership', 'plan', 'slices', 'cluster-info', 'electorate', 'failover-records', 'startup-taint'],
    ...['admission', '.'],
  ],
  'src/operator': ['objects', 'inputs', 'dns', '.'],
  'src/proxy': ['engine', 'dns', 'envoy', 'nginx', '.'],
  'src/agent': ['thread', 'mirror', 'heartbeat', 'inputs', 'kernel', 'failover', 'reconcile', 'report', '.'],
};

/** Every import of shipped code from a room that does not stand before its own, and every folder that is in no list. */
export const roomOffences = (files: readonly SourceFile[]): Offence[] =>
  files.filter(isShipped).flatMap((file) => {
    const layer = layerOf(file.path);
    const order = rooms[layer];
    if (order === undefined) return [];
    const room = roomOf(file.path);
    const place = order.indexOf(room);
    if (place < 0) {
      return [{ path: file.path, line: 1, sentence: `${layer}/${room} has no place in tools/boundaries/rooms.ts` }];
    }
    return importsOf(file.text).flatMap(({ specifier, line }) => {
      if (!specifier.startsWith('.')) return [];
      const target = posix.join(posix.dirname(file.path), specifier);
      const other = roomOf(target);
      if (layerOf(target) !== layer || other === room || order.slice(0, place).includes(other)) return [];
      return [
        {
          path: file.path,
          line,
          sentence: `${layer}/${room} may not import ${layer}/${other} (${specifier}): rooms import only those before them`,
        },
      ];
    });
  });

const isShipped = ({ path }: SourceFile): boolean =>
  path.startsWith('src/') &&
  path.endsWith('.ts') &&
  !path.endsWith('.test.ts') &&
  !/\/(testing|testing\.ts)(\/|$)/.test(path);

const layerOf = (path: string): string => path.split('/').slice(0, 2).join('/');

/** The folder directly below the layer; '.' for a file of the layer itself. */
const roomOf = (path: string): string => {
  const [, , room = '.', ...rest] = path.split('/');
  return rest.length === 0 ? '.' : room;
};
