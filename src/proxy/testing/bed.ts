/**
 * The test bed of engines. The process that runs it is alone in a network namespace (test/kernel/enter.ts), so all
 * addresses are on the loopback device and every port is free: proxy, clients, outside servers and what must never be
 * reached live side by side, and an engine runs exactly as in a pod.
 */
import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { proxyPorts, type RuleSet } from '../../core/proxy/served.ts';
import { createAuthority, issue, type KeyPair } from '../../runtime/certs/authority.ts';
import { systemClock } from '../../runtime/process/clock.ts';
import { createLog } from '../../runtime/process/log.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { outsideResolvers } from '../dns/outside.ts';
import { GuardedResolver } from '../dns/resolver.ts';
import { serveDns } from '../dns/server.ts';
import type { AccessLine } from '../engine/access-line.ts';
import type { AppliedRules, EngineParts, ProxyEngine } from '../engine/engine.ts';
import type { Sources } from '../engine/sources.ts';
import { proxyAddress } from './client.ts';
import { type DnsAuthority, openDnsAuthority } from './dns-authority.ts';

/** Makes the engine under test. */
export type MakeEngine = (parts: EngineParts & { readonly names: GuardedResolver }) => ProxyEngine;

export interface Bed extends AsyncDisposable {
  readonly engine: ProxyEngine;
  /** The guarding resolver, as the process runs it beside the engine. */
  readonly guard: GuardedResolver;
  /** The DNS outside. */
  readonly dns: DnsAuthority;
  /** Signs the certificates of outside servers. */
  readonly ca: string;
  certificateFor(...names: readonly string[]): Promise<KeyPair>;
  /** The access log since the start, or since it was last forgotten. */
  readonly lines: readonly AccessLine[];
  forgetLines(): void;
  /** Resolves with the first line that fits, also one that was written before. */
  line(what: string, fits: (line: AccessLine) => boolean): Promise<AccessLine>;
  /** Tells engine and guard whose addresses clients have, as the process does. */
  admit(sources: Sources): Promise<void>;
  /** Makes a rule set live, names and all, as the process does. */
  serve(rules: RuleSet): Promise<AppliedRules>;
  /** Processes of the engine that we started ourselves. */
  enginePids(): number[];
}

/** Addresses of the outside; documentation ranges, which no plan forbids. */
export const outside = {
  one: '203.0.113.1',
  two: '203.0.113.2',
  three: '203.0.113.3',
  six: '2001:db8::1',
  dns: '203.0.113.53',
} as const;

/** Addresses that no rule names: a Service, a metadata server, private ones. The proxy itself is at 10.244.0.10. */
export const inside = [
  '10.96.0.5',
  '169.254.169.254',
  '192.168.7.7',
  '100.64.0.9',
  'fd00:ec2::254',
  'fd12::5',
] as const;

/** Source addresses of clients. */
export const clients: readonly string[] = Array.from({ length: 20 }, (_, index) => `10.244.1.${index + 1}`);

/** Opens the bed and starts the engine. With an access log of the caller's own, `lines` stays empty. */
export const openBed = async (
  make: MakeEngine,
  program: string,
  accessLog?: EngineParts['accessLog'],
): Promise<Bed> => {
  addAddresses([proxyAddress, ...clients, ...Object.values(outside), ...inside]);
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-engine-'));
  const lines: AccessLine[] = [];
  const log = createLog({ process: 'proxy', level: 'error' });
  const parts: EngineParts = {
    program,
    folder,
    log,
    clock: systemClock,
    accessLog:
      accessLog ??
      ((more) => {
        lines.push(...more.toString().trimEnd().split('\n').map(accessLine));
      }),
  };
  const authority = await createAuthority({ commonName: 'outside', lifetimeDays: 1, now: new Date() });
  const dns = await openDnsAuthority(outside.dns);
  const nameservers = [{ host: outside.dns }];
  const guard = new GuardedResolver({
    outside: outsideResolvers({ nameservers, clock: systemClock, randomInt }),
    clock: systemClock,
  });
  const guardServer = await serveDns(guard, { host: '127.0.0.1', port: proxyPorts.dns });
  const engine = make({ ...parts, names: guard });
  const stop = new AbortController();
  const running = engine.run(stop.signal);
  return {
    engine,
    dns,
    ca: authority.certificatePem,
    certificateFor: (...names) =>
      issue(authority, {
        commonName: names[0] ?? '',
        dnsNames: names,
        usages: ['server'],
        lifetimeDays: 1,
        now: new Date(),
      }),
    lines,
    forgetLines() {
      lines.length = 0;
    },
    async line(what, fits) {
      await eventually(`access log line: ${what}`, () => lines.some(fits));
      const [found] = lines.filter(fits);
      if (found === undefined) throw new Error('unreachable: the line was there');
      return found;
    },
    guard,
    admit(sources) {
      guard.admit(sources);
      return engine.admit(sources);
    },
    serve(rules) {
      guard.set(rules);
      return engine.apply(rules);
    },
    enginePids: () => childrenNamed(engine.name),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
      guard.stop();
      await guardServer.close();
      await dns[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    },
  };
};

const addAddresses = (addresses: readonly string[]): void => {
  execFileSync('ip', ['link', 'set', 'lo', 'up']);
  for (const address of addresses) {
    const prefix = address.includes(':') ? '128' : '32';
    execFileSync('ip', ['address', 'replace', `${address}/${prefix}`, 'dev', 'lo']);
  }
};

const accessLine = (line: string): AccessLine => {
  try {
    // Tests judge the fields that they read.
    return JSON.parse(line) as AccessLine;
  } catch {
    throw new Error(`the access log has a line that is no JSON: ${line}`);
  }
};

const childrenNamed = (name: string): number[] =>
  readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .filter((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
        const end = stat.lastIndexOf(')');
        const parent = Number(stat.slice(end + 2).split(' ')[1]);
        return stat.slice(stat.indexOf('(') + 1, end) === name && parent === process.pid;
      } catch {
        // It ended while we looked.
        return false;
      }
    })
    .map(Number);
