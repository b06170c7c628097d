/** A thread of heartbeats that does what the test says. */
import type { Input } from '../../core/ownership/port.ts';
import type { StartHeartbeat } from '../failover/failover-client.ts';
import type { ReadyEips } from '../heartbeat/gate-controller.ts';
import type { HeartbeatHooks, ThreadEvent } from '../heartbeat/heartbeat.ts';
import type { ThreadData } from '../heartbeat/thread.ts';

export interface FakeThread {
  readonly data: ThreadData;
  /** One after the other, each in a turn of its own, or several in one. */
  readonly hooks: Pick<HeartbeatHooks, 'failed'> & { told(...tidings: readonly ThreadEvent[]): void };
  readonly inputs: Input[];
  ready: ReadyEips;
  addresses: ReadonlyMap<string, string>;
  renewals: number;
  isClosed: boolean;
  readonly listening: PromiseWithResolvers<void>;
}

/** The thread as the test sees it, and as the failover client does. */
export const fakeThread = (
  data: ThreadData,
  hooks: HeartbeatHooks,
): { readonly thread: FakeThread; readonly port: ReturnType<StartHeartbeat> } => {
  const thread: FakeThread = {
    data,
    hooks: { told: (...tidings) => hooks.told(tidings), failed: (error) => hooks.failed(error) },
    inputs: [],
    ready: new Map(),
    addresses: new Map(),
    renewals: 0,
    isClosed: false,
    listening: Promise.withResolvers(),
  };
  const port: ReturnType<StartHeartbeat> = {
    listening: () => thread.listening.promise,
    take: (input) => void thread.inputs.push(input),
    vote: () => {},
    setAddresses: (addresses) => {
      thread.addresses = addresses;
    },
    setReady: (ready) => {
      thread.ready = ready;
    },
    setUplink: () => {},
    setMirror: () => {},
    renew: () => {
      thread.renewals += 1;
    },
    close: async () => {
      thread.isClosed = true;
    },
  };
  return { thread, port };
};
