/**
 * A lab in which the controller and the agents are plain processes of the working tree, without chart and DaemonSet: a
 * test starts, kills and cleans them one by one, and a failure here is one of the program, not of its packaging.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { stringify } from 'yaml';
import { addresses, ports } from '../../lab/cluster/shape.ts';
import { must } from '../../lab/host/command.ts';
import { instanceOf } from '../../lab/host/instance.ts';
import { labMark, nodeMark } from '../../lab/host/processes.ts';
import { until } from '../../lab/host/wait.ts';
import { type Lab, startLab } from '../../lab/lab.ts';
import { inNamespace } from '../../lab/net/fabric.ts';

const root = join(import.meta.dirname, '..', '..');
const program = join(root, 'bin', 'sallyport');
const healthPort = 8081;

/** One line of a log. */
export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** A process of ours. */
export interface Running {
  readonly process: ChildProcess;
  readonly lines: readonly LogLine[];
  /** Sends a signal and resolves when the process is gone. */
  end(signal: NodeJS.Signals): Promise<void>;
}

/** The agent of a node. */
export interface RunningAgent extends Running {
  /** The text of a page of its health server. */
  page(path: string): Promise<string>;
}

export class AgentWorld {
  readonly lab: Lab;
  readonly #folder = mkdtempSync(join(tmpdir(), 'sallyport-e2e-'));
  readonly #config = join(this.#folder, 'config.yaml');
  readonly #running: Running[] = [];

  private constructor(lab: Lab) {
    this.lab = lab;
  }

  /** A lab with our kinds and a controller, and no agent yet. */
  static async start(name: string, shape: { gateways: number; workers: number }): Promise<AgentWorld> {
    const lab = await startLab({ name, ...shape });
    const world = new AgentWorld(lab);
    try {
      writeFileSync(world.#config, stringify({ feature: { enableIPv6: true } }));
      await lab.kubectl(['apply', '--server-side', '-f', '-'], await must('print the CRDs', [program, 'crds']));
      await lab.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=180s']);
      await lab.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'sallyport' } });
      const flags = ['--kubeconfig', lab.kubeconfig, '--config', world.#config];
      const local = ['--health-address=127.0.0.1:0', '--webhook-address=127.0.0.1:0'];
      world.#start([program, 'controller', ...flags, ...local], {});
      return world;
    } catch (error) {
      await world.stop();
      throw error;
    }
  }

  /** Starts the agent of a node and resolves when it is ready. */
  async agent(node: string): Promise<RunningAgent> {
    const flags = [...this.#agentFlags(node), '--node-name', node, `--health-address=127.0.0.1:${healthPort}`];
    const argv = inNamespace(instanceOf(this.lab.name), node, [program, 'agent', ...flags]);
    const running = this.#start(argv, { [labMark]: this.lab.name, [nodeMark]: node });
    const page = (path: string) =>
      this.lab.exec(node, ['curl', '-sS', '--max-time', '5', `http://127.0.0.1:${healthPort}${path}`]);
    await until({ what: `the agent of ${node} to be ready`, limitMs: 30_000 }, async () =>
      (await page('/readyz')).endsWith('\nok\n'),
    );
    return { ...running, page };
  }

  /** Runs `sallyport agent --clean` on a node. */
  async clean(node: string): Promise<void> {
    await this.lab.exec(node, [program, 'agent', '--clean', ...this.#agentFlags(node)]);
  }

  /** What one asks with curl in a pod: the source address that the outside server sees, or why there is no answer. */
  async source(pod: string, family: 4 | 6): Promise<string> {
    const host = family === 4 ? addresses.outside.ipv4 : `[${addresses.outside.ipv6}]`;
    const curl = ['curl', '-sS', '--max-time', '2', `http://${host}:${ports.http}/`];
    const { code, stdout, stderr } = await this.lab.tryKubectl(['exec', pod, '--', ...curl]);
    // The outside server of the lab writes this.
    return code === 0 ? (JSON.parse(stdout) as { address: string }).address : stderr.trim();
  }

  /** Waits until a pod is seen with these addresses. */
  async untilSource(pod: string, expected: { readonly ipv4: string; readonly ipv6: string }): Promise<void> {
    for (const [family, address] of [[4, expected.ipv4] as const, [6, expected.ipv6] as const]) {
      let seen = '';
      const what = `pod ${pod} to leave with ${address}`;
      await until({ what, limitMs: 30_000, explain: () => `last seen: ${seen}` }, async () => {
        seen = await this.source(pod, family);
        return seen === address;
      });
    }
  }

  /** Ends all processes and takes the lab down. */
  async stop(): Promise<void> {
    await Promise.all(this.#running.map((running) => running.end('SIGKILL')));
    await this.lab.down();
    rmSync(this.#folder, { recursive: true });
  }

  #agentFlags(node: string): string[] {
    // The kubeconfig that works inside the cluster network; the lab writes it beside its certificates.
    const kubeconfig = join(this.lab.kubeconfig, '..', 'pki', 'admin.kubeconfig');
    return ['--kubeconfig', kubeconfig, '--config', this.#config, '--state-folder', this.stateFolder(node)];
  }

  /** Where the agent of a node keeps what must survive a restart. */
  stateFolder(node: string): string {
    return join(this.#folder, node);
  }

  #start([command = '', ...args]: readonly string[], env: Readonly<Record<string, string>>): Running {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...env } });
    const lines: LogLine[] = [];
    createInterface({ input: child.stdout }).on('line', (line) => {
      // Our own log: one JSON object per line.
      lines.push(JSON.parse(line) as LogLine);
    });
    const running: Running = {
      process: child,
      lines,
      end: async (signal) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const ended = once(child, 'exit');
        child.kill(signal);
        await ended;
      },
    };
    this.#running.push(running);
    return running;
  }
}
