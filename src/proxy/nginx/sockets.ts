/**
 * The kernel's tables of TCP sockets (proc(5), /proc/PID/net/tcp and tcp6). nginx has no counts of its own that survive a
 * reload, and its log knows a connection only when it has ended; the kernel knows all of them, of draining workers too.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { type Ip, ipBytes } from '../../core/ip/index.ts';

/** One socket. The other end is kept as the kernel writes it, because most are never looked at. */
export interface SocketRow {
  readonly localPort: number;
  /** Comparable with `endpointText`. */
  readonly remote: string;
  readonly state: 'listen' | 'established' | 'other';
  readonly inode: string;
}

const states: Readonly<Record<string, SocketRow['state']>> = { '0A': 'listen', '01': 'established' };

/** Reads a table; lines that are no socket are left out. */
export const parseSockets = (table: string): SocketRow[] => {
  const rows: SocketRow[] = [];
  for (const line of table.split('\n')) {
    const [slot = '', local = '', remote = '', state = '', , , , , , inode = ''] = line.trim().split(/ +/);
    if (!slot.endsWith(':')) continue;
    const localPort = Number.parseInt(local.slice(local.indexOf(':') + 1), 16);
    rows.push({ localPort, remote, state: states[state] ?? 'other', inode });
  }
  return rows;
};

/** An address and port as the kernel writes them: 32-bit words in the machine's byte order, which is little-endian here. */
export const endpointText = (ip: Ip, port: number): string => {
  const text = Buffer.from(ipBytes(ip)).swap32().toString('hex').toUpperCase();
  return `${text}:${port.toString(16).toUpperCase().padStart(4, '0')}`;
};

/** All TCP sockets of the network namespace that the process is in; none when it is gone. */
export const readSockets = (pid: number): SocketRow[] =>
  ['tcp', 'tcp6'].flatMap((table) => parseSockets(readText(`/proc/${pid}/net/${table}`)));

/** Inodes of the sockets that a process holds; none when it is gone. */
export const socketsOf = (pid: number): ReadonlySet<string> => {
  // Reading a thousand links takes three milliseconds at once, and fifty when each of them waits for a thread.
  const folder = `/proc/${pid}/fd`;
  const found = new Set<string>();
  for (const entry of orGone(() => readdirSync(folder), [])) {
    const link = orGone(() => readlinkSync(`${folder}/${entry}`), '');
    if (link.startsWith('socket:[')) found.add(link.slice(8, -1));
  }
  return found;
};

/** A process may end while we look, and a kernel without IPv6 has no tcp6. */
const orGone = <T>(read: () => T, value: T): T => {
  try {
    return read();
  } catch (error) {
    if (error instanceof Error && 'code' in error && ['ENOENT', 'ESRCH', 'EINVAL'].includes(String(error.code)))
      return value;
    throw error;
  }
};

const readText = (file: string): string => orGone(() => readFileSync(file, 'utf8'), '');
