/** What the cluster did: calls that the API server has served, lines that agents have written, what agents took of the machine. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { agentPattern } from '../../lab/faults/processes.ts';
import { instanceOf } from '../../lab/host/instance.ts';
import type { Lab } from '../../lab/lab.ts';
import { processesOn } from '../../lab/power.ts';

/** Counts of a time. */
export interface Work {
  readonly 'status writes of policies': number;
  readonly 'status writes of tunnels': number;
  readonly 'status writes of gateways': number;
  readonly events: number;
  readonly 'lines of agents': number;
  readonly 'lines of controllers': number;
}

/** Counts up to now. */
export interface WorkSoFar extends Work {
  since(before: Work): Work;
}

/** What an agent took. */
export interface AgentCost {
  readonly node: string;
  /** Until all was in force, and of a core after that. */
  readonly cpuSeconds: number;
  readonly restPercent: number;
  readonly rssMb: number;
}

const ticksPerSecond = 100;

export async function workOf(lab: Lab): Promise<WorkSoFar> {
  const metrics = await lab.kubectl(['get', '--raw', '/metrics']);
  const writes = (resource: string, more: string): number => requests(metrics, resource, more);
  const work: Work = {
    'status writes of policies': writes('egresspolicies', 'subresource="status"'),
    'status writes of tunnels': writes('egresstunnels', 'subresource="status"'),
    'status writes of gateways': writes('egressgateways', 'subresource="status"'),
    events: writes('events', 'group="events.k8s.io"'),
    'lines of agents': linesOf(lab, 'agent'),
    'lines of controllers': linesOf(lab, 'controller'),
  };
  return {
    ...work,
    since: (before) => {
      const count = (what: keyof Work): number => work[what] - before[what];
      return {
        'status writes of policies': count('status writes of policies'),
        'status writes of tunnels': count('status writes of tunnels'),
        'status writes of gateways': count('status writes of gateways'),
        events: count('events'),
        'lines of agents': count('lines of agents'),
        'lines of controllers': count('lines of controllers'),
      };
    },
  };
}

/** Calls that changed something. */
function requests(metrics: string, resource: string, more: string): number {
  let sum = 0;
  for (const line of metrics.split('\n')) {
    if (!line.startsWith('apiserver_request_total{') || !line.includes(`resource="${resource}"`)) continue;
    if (line.includes(more) && /verb="(APPLY|PATCH|POST|PUT)"/.test(line)) sum += Number(line.split(' ').at(-1));
  }
  return sum;
}

/** Lines in the logs of the pods of a program of ours. */
function linesOf({ name }: Lab, program: 'agent' | 'controller'): number {
  const nodes = join(instanceOf(name).folder, 'nodes');
  let count = 0;
  for (const node of readdirSync(nodes)) {
    const logs = join(nodes, node, 'logs');
    for (const pod of readdirSync(logs).filter((one) => one.startsWith(`sallyport_sallyport-${program}`))) {
      for (const file of readdirSync(join(logs, pod), { recursive: true, encoding: 'utf8' })) {
        if (file.endsWith('.log')) count += readFileSync(join(logs, pod, file), 'utf8').split('\n').length - 1;
      }
    }
  }
  return count;
}

/** The processor time that agents have had so far, and their memory. */
export function costOfAgents(lab: Lab) {
  return lab.status.nodes.map(({ name: node }) => {
    const [agent] = processesOn(instanceOf(lab.name), node, agentPattern);
    if (agent === undefined) throw new Error(`no agent on ${node}`);
    const stat = readFileSync(`/proc/${agent.pid}/stat`, 'utf8');
    const times = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 15)
      .map(Number);
    const rss = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${agent.pid}/status`, 'utf8'))?.[1];
    return {
      node,
      cpuSeconds: times.reduce((sum, ticks) => sum + ticks, 0) / ticksPerSecond,
      rssMb: Number(rss) / 1_000,
    };
  });
}
