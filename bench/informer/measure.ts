/** What a measured process does after it is synced: settle, read its own memory, print one line. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Measurement } from '../informer.ts';

/** Collects garbage until RSS stops falling (at most ten times), then prints the measurement. Needs --expose-gc. */
export async function report(objects: number, syncMs: number): Promise<void> {
  let rssMb = memory('VmRSS');
  for (let round = 0; round < 10; round += 1) {
    globalThis.gc?.();
    await sleep(200);
    const nowMb = memory('VmRSS');
    if (round >= 3 && nowMb > rssMb - 0.5) break;
    rssMb = Math.min(rssMb, nowMb);
  }
  const measurement: Measurement = { objects, syncMs, rssMb: memory('VmRSS'), peakMb: memory('VmHWM') };
  console.log(JSON.stringify(measurement));
}

function memory(field: 'VmRSS' | 'VmHWM'): number {
  const kilobytes = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  return Number(kilobytes) / 1024;
}
