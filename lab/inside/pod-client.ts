import { join } from 'node:path';
import { urlHost } from '../cluster/shape.ts';
import { until } from '../host/wait.ts';
import type { Lab } from '../lab.ts';
import type { Answer, Question, StreamOptions, Tally } from './client.ts';
import type { FlowOptions, FlowReport } from './flow.ts';

/** Where the client takes orders, and answers `/who` with the address of whoever asks. */
export const controlPort = 8070;

/** What a client pod should be. */
export interface ClientPod {
  readonly name: string;
  readonly namespace: string;
  readonly node: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** The manifest of a pod that runs the client. */
export const clientManifest = ({ name, namespace, node, labels = {} }: ClientPod): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace, labels: { app: name, ...labels } },
  spec: {
    nodeName: node,
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        name: 'client',
        image: 'any/image:will-do',
        command: [process.execPath, join(import.meta.dirname, 'main.ts'), String(controlPort)],
      },
    ],
  },
});

/** A stream of questions that goes on in a pod. */
export interface RunningStream {
  tally(): Promise<Tally>;
  stop(): Promise<Tally>;
}

/** A kept connection that goes on in a pod. */
export interface RunningFlow {
  report(): Promise<FlowReport>;
  stop(): Promise<FlowReport>;
}

/** A client in a pod, as a test speaks to it. */
export class PodClient {
  readonly pod: ClientPod;
  /** Empty where the lab has no such family; the same for IPv6. */
  readonly ipv4: string;
  readonly ipv6: string;
  readonly #lab: Lab;
  #streams = 0;

  constructor(lab: Lab, pod: ClientPod, ips: { readonly ipv4: string; readonly ipv6: string }) {
    this.#lab = lab;
    this.pod = pod;
    this.ipv4 = ips.ipv4;
    this.ipv6 = ips.ipv6;
  }

  /** Asks once over a new connection. */
  async ask(question: Question): Promise<Answer> {
    const [answer = { failure: 'no answer' }] = await this.askAll([question]);
    return answer;
  }

  /** Asks all of them at the same time, each over a new connection; the answers are in the order of the questions. */
  async askAll(questions: readonly Question[]): Promise<Answer[]> {
    // client.ts wrote it.
    return (await this.#call('POST', 'ask', questions)) as Answer[];
  }

  /** The address that the outside sees; a failure as its text in brackets, so that either can be compared. */
  async source(question: Question): Promise<string> {
    const answer = await this.ask(question);
    return 'failure' in answer ? `(${answer.failure})` : answer.address;
  }

  /** Asks every few milliseconds until stopped. */
  async stream(question: Question, options: StreamOptions) {
    this.#streams += 1;
    const path = `streams/${this.#streams}`;
    await this.#call('POST', path, { question, ...options });
    const read = async (method: string) => (await this.#call(method, path)) as Tally;
    return { tally: () => read('GET'), stop: () => read('DELETE') } satisfies RunningStream;
  }

  /** Opens a connection that is used until stopped. */
  async flow(options: FlowOptions) {
    this.#streams += 1;
    const path = `flows/${this.#streams}`;
    await this.#call('POST', path, options);
    const read = async (method: string) => (await this.#call(method, path)) as FlowReport;
    return { report: () => read('GET'), stop: () => read('DELETE') } satisfies RunningFlow;
  }

  async #call(method: string, path: string, body?: object): Promise<unknown> {
    const url = `http://${urlHost(this.ipv4 || this.ipv6)}:${controlPort}/${path}`;
    const data = body === undefined ? [] : ['--data-binary', JSON.stringify(body)];
    const argv = ['curl', '-sS', '--fail-with-body', '--max-time', '30', '-X', method, ...data, url];
    return JSON.parse(await this.#lab.exec(this.pod.node, argv));
  }
}

/** Makes client pods and returns when all of them answer. */
export async function startClients(lab: Lab, pods: readonly ClientPod[]): Promise<PodClient[]> {
  await lab.apply(...pods.map(clientManifest));
  return Promise.all(pods.map((pod) => startedClient(lab, pod)));
}

async function startedClient(lab: Lab, pod: ClientPod): Promise<PodClient> {
  const wait = { what: `pod ${pod.namespace}/${pod.name} to answer`, limitMs: 90_000 };
  const ips = await until(wait, async () => {
    const path = 'jsonpath={.status.podIPs[*].ip}';
    const text = await lab.kubectl(['-n', pod.namespace, 'get', 'pod', pod.name, '-o', path]);
    const ips = text.split(' ').filter((ip) => ip !== '');
    const [first] = ips;
    if (first === undefined || ips.length < lab.status.families.length) return undefined;
    await lab.exec(pod.node, ['curl', '-sSf', '--max-time', '2', `http://${urlHost(first)}:${controlPort}/who`]);
    return { ipv4: ips.find((ip) => !ip.includes(':')) ?? '', ipv6: ips.find((ip) => ip.includes(':')) ?? '' };
  });
  return new PodClient(lab, pod, ips);
}
