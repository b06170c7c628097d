import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Instance } from './host/instance.ts';

/**
 * What our programs in a lab said, for somebody who reads that a test has failed when the lab is long gone. It comes from the files
 * that the kubelets write, so it is there also when the API server is not.
 */

/** Lines worth telling of each run of a container: complaints, and the very last ones whatever they are. */
const complaintsToTell = 8;
const lastToTell = 2;
const longestLine = 400;

/** A line as the container runtime writes it: time, stream, whether it is whole, and what was said. */
const written = /^(\S+) \S+ \S+ (.*)$/;
/** A line of our own log. */
const ownLine = z.object({
  level: z.string(),
  time: z.string().default(''),
  component: z.string().default(''),
  reason: z.string().default(''),
  msg: z.string(),
});

interface Said {
  readonly atMs: number;
  readonly isComplaint: boolean;
  readonly text: string;
}

/** Complaints and last lines since a time, of every program of ours that said something since. */
export function lastWords({ folder }: Pick<Instance, 'folder'>, sinceMs: number): string {
  return logFiles(folder)
    .map(({ who, path }) => tell(who, readSaid(path), sinceMs))
    .filter(Boolean)
    .join('\n');
}

/** The same of one process whose lines somebody else has kept. */
export function lastWordsOf(who: string, lines: readonly unknown[], sinceMs: number): string {
  const said = lines.flatMap((line): Said[] => {
    const own = ownLine.safeParse(line);
    return own.success ? [{ atMs: Date.parse(own.data.time), ...inShort(own.data.time.slice(11, 23), own.data) }] : [];
  });
  return tell(who, said, sinceMs);
}

function tell(who: string, all: readonly Said[], sinceMs: number): string {
  const said = all.filter(({ atMs }) => atMs >= sinceMs);
  const complaints = said.filter(({ isComplaint }) => isComplaint);
  const told = new Set([...complaints.slice(-complaintsToTell), ...said.slice(-lastToTell)]);
  if (told.size === 0) return '';
  const head = `${who}: ${said.length} lines, ${complaints.length} complaints`;
  return [head, ...said.filter((line) => told.has(line)).map(({ text }) => `  ${text}`)].join('\n');
}

/** The logs of all containers of our pods: NODE/logs/NAMESPACE_POD_UID/CONTAINER/RUN.log. */
function logFiles(folder: string): { who: string; path: string }[] {
  const nodes = join(folder, 'nodes');
  return namesIn(nodes).flatMap((node) =>
    namesIn(join(nodes, node, 'logs')).flatMap((pod) => {
      const [, name = ''] = pod.split('_');
      // Proxies are in the namespaces of their users, and have a container of ours too.
      if (!pod.startsWith('sallyport_') && !name.startsWith('egress-controller')) return [];
      const own = join(nodes, node, 'logs', pod);
      return namesIn(own).flatMap((container) =>
        namesIn(join(own, container)).map((run) => ({
          who: `${name} on ${node}, ${container}, run ${run.replace('.log', '')}`,
          path: join(own, container, run),
        })),
      );
    }),
  );
}

function readSaid(path: string): Said[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((line) => {
      const [, time = '', text = ''] = written.exec(line) ?? [];
      if (time === '') return [];
      const clock = time.slice(11, 23);
      const own = ownLine.safeParse(parsed(text));
      const plain = { isComplaint: false, text: `${clock} ${text}`.slice(0, longestLine) };
      return [{ atMs: Date.parse(time), ...(own.success ? inShort(clock, own.data) : plain) }];
    });
}

function inShort(time: string, { level, component, reason, msg }: z.infer<typeof ownLine>) {
  const words = [time, level, component, reason === '' ? '' : `(${reason})`, msg].filter(Boolean);
  return { isComplaint: !['debug', 'info'].includes(level), text: words.join(' ').slice(0, longestLine) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The names in a folder; none if it is not there, or is a file: pods come and go meanwhile. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).toSorted();
  } catch {
    return [];
  }
}
