/** Load on a proxy: bytes by iperf3, requests by wrk. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { proxyAddress } from '../../src/proxy/testing/client.ts';
import { places } from './places.ts';

const run = promisify(execFile);
const Iperf = z.object({ end: z.object({ sum_received: z.object({ bits_per_second: z.number() }) }) });

/** Gbit/s of four streams through a TCP port of a proxy. */
export const throughput = async (port: number, seconds: number): Promise<number> => {
  const args = [
    '--client',
    proxyAddress,
    '--port',
    String(port),
    '--parallel',
    '4',
    '--time',
    String(seconds),
    '--json',
  ];
  const { stdout } = await run('iperf3', args, { maxBuffer: 64 * 1024 * 1024 });
  return Iperf.parse(JSON.parse(stdout)).end.sum_received.bits_per_second / 1e9;
};

/** Requests per second over 32 connections through the HTTP port of a proxy, by Host, as of a client that DNS led there. */
export const requests = (port: number, seconds: number): Promise<number> => wrk(port, seconds, []);

/** The same by URL, as of a client that has HTTP_PROXY set. */
export const requestsByUrl = async (port: number, seconds: number): Promise<number> => {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-wrk-'));
  const script = join(folder, 'by-url.lua');
  const lines = `GET http://${places.host}/ HTTP/1.1\\r\\nHost: ${places.host}\\r\\n\\r\\n`;
  writeFileSync(script, `request = function() return "${lines}" end\n`);
  try {
    return await wrk(port, seconds, ['--script', script]);
  } finally {
    rmSync(folder, { recursive: true });
  }
};

/** Throws if a request was not answered well. */
const wrk = async (port: number, seconds: number, more: readonly string[]): Promise<number> => {
  const url = `http://${proxyAddress}:${port}/`;
  const args = [
    ...more,
    '--threads',
    '1',
    '--connections',
    '32',
    '--duration',
    `${seconds}s`,
    '-H',
    `Host: ${places.host}`,
    url,
  ];
  const { stdout } = await run('wrk', args);
  const rate = /Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1];
  if (rate === undefined || /Non-2xx|Socket errors/.test(stdout)) throw new Error(`wrk on port ${port}:\n${stdout}`);
  return Number(rate);
};

/** What a process and its children take: memory in MB, shared pages counted once, and processor time since their start. */
export const usageOf = (root: number): { readonly megabytes: number; readonly cpuMs: number } => {
  let bytes = 0;
  let cpuMs = 0;
  for (const pid of familyOf(root)) {
    try {
      const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
      bytes += Number(/^Pss:\s+(\d+) kB/m.exec(rollup)?.[1] ?? 0) * 1024;
      cpuMs += runMsOf(pid);
    } catch {
      // It ended while we looked.
    }
  }
  return { megabytes: bytes / 1e6, cpuMs };
};

const familyOf = (root: number): number[] => {
  const family = [root];
  for (const parent of family) {
    try {
      const children = readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').trim();
      if (children !== '') family.push(...children.split(' ').map(Number));
    } catch {
      // It ended while we looked.
    }
  }
  return family;
};

/** Processor time of all threads in nanoseconds, as the scheduler counts it: ticks would be too coarse for ratios near one. */
const runMsOf = (pid: number): number =>
  readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => {
    const [nanoseconds] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ');
    return sum + Number(nanoseconds) / 1e6;
  }, 0);
