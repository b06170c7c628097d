/** The administration of a running Envoy, over its socket file: what it has in force and what it counts. */
import { request } from 'node:http';
import { z } from 'zod';
import { EgressError } from '../../api/error.ts';

/** Resources that come from one file. */
export const sources = {
  clusters: 'cluster_manager.cds',
  listeners: 'listener_manager.lds',
  routes: 'http.proxy.rds.rules',
} as const;
export type EnvoySource = keyof typeof sources;

/** A listener as Envoy has it. */
export interface ListenerState {
  /** The update that put it in force; absent when it is not. */
  readonly version: number | undefined;
  /** Why the last update of it was refused. */
  readonly error: string | undefined;
}

const LIMIT_MS = 5_000;

const Stats = z.object({
  stats: z.array(z.object({ name: z.string(), value: z.union([z.number(), z.string()]) }).partial()),
});

const versioned = z.object({ version_info: z.coerce.number() }).partial().optional();
const Listeners = z.object({
  configs: z
    .array(
      z.object({
        name: z.string().optional(),
        active_state: versioned,
        error_state: z.object({ details: z.string().optional() }).optional(),
      }),
    )
    .default([]),
});
const Chains = z.object({
  configs: z
    .array(
      z.object({
        name: z.string().optional(),
        active_state: z
          .object({ listener: z.object({ filter_chains: z.array(z.object({ name: z.string() })).default([]) }) })
          .optional(),
      }),
    )
    .default([]),
});
const Clusters = z.object({
  configs: z.array(z.object({ version_info: z.coerce.number(), cluster: z.object({ name: z.string() }) })).default([]),
});

export class Admin {
  readonly #socketPath: string;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** All counts that are kept and were ever used, by name. */
  async stats(): Promise<Map<string, number>> {
    return numbers(Stats.parse(await this.#get('/stats?format=json&usedonly')));
  }

  /** The version of each file that was taken as a whole; cheap enough to be asked all the time. */
  async versions(): Promise<Readonly<Record<EnvoySource, string>>> {
    const { stats } = Stats.parse(await this.#get('/stats?format=json&type=TextReadouts'));
    const byName = new Map(stats.map(({ name, value }) => [name, String(value ?? '')]));
    const versionOf = (source: EnvoySource): string => byName.get(`${sources[source]}.version_text`) ?? '';
    return { clusters: versionOf('clusters'), listeners: versionOf('listeners'), routes: versionOf('routes') };
  }

  /** How many updates of a file were refused, as a whole or in part. */
  async rejected(source: EnvoySource): Promise<number> {
    return this.#stat('Counters', `${sources[source]}.update_rejected`);
  }

  /** How many clusters look for their first addresses, or listeners are not in force yet. */
  async warming(source: 'clusters' | 'listeners'): Promise<number> {
    const name =
      source === 'clusters' ? 'cluster_manager.warming_clusters' : 'listener_manager.total_listeners_warming';
    return this.#stat('Gauges', name);
  }

  /** All listeners that are in force or were refused, by name. */
  async listeners(): Promise<Map<string, ListenerState>> {
    const mask = 'name,active_state.version_info,error_state.details';
    const { configs } = Listeners.parse(await this.#get(`/config_dump?resource=dynamic_listeners&mask=${mask}`));
    return new Map(
      configs.flatMap(({ name, active_state, error_state }) =>
        // A refused listener is told twice, once without its name.
        name === undefined ? [] : [[name, { version: active_state?.version_info, error: error_state?.details }]],
      ),
    );
  }

  /** Listener name -> names of its chains in force, sorted; of these listeners only, because the answer is long. */
  async chains(listeners: readonly string[]): Promise<Map<string, string[]>> {
    const regex = encodeURIComponent(`^(${listeners.map((name) => RegExp.escape(name)).join('|')})$`);
    const path = `/config_dump?resource=dynamic_listeners&name_regex=${regex}&mask=name,active_state.listener`;
    const { configs } = Chains.parse(await this.#get(path));
    return new Map(
      configs.flatMap(({ name, active_state }) => {
        if (name === undefined || active_state === undefined) return [];
        return [[name, active_state.listener.filter_chains.map((chain) => chain.name).toSorted()]];
      }),
    );
  }

  /** Cluster name -> the update that brought it, also of those that still look for their first addresses. */
  async clusters(): Promise<Map<string, number>> {
    const kinds = ['dynamic_active_clusters', 'dynamic_warming_clusters'];
    const dumps = await Promise.all(
      kinds.map(async (kind) =>
        Clusters.parse(await this.#get(`/config_dump?resource=${kind}&mask=version_info,cluster.name`)),
      ),
    );
    return new Map(
      dumps.flatMap(({ configs }) => configs.map(({ version_info, cluster }) => [cluster.name, version_info])),
    );
  }

  /** Has the access log opened by its name again. */
  async reopenLogs(): Promise<void> {
    await this.#ask('POST', '/reopen_logs');
  }

  /** Has every answer of HTTP/1 end its connection; listeners and open connections go on. */
  async retire(): Promise<void> {
    await this.#ask('POST', '/healthcheck/fail');
  }

  async #stat(type: 'Counters' | 'Gauges', name: string): Promise<number> {
    const filter = encodeURIComponent(`^${RegExp.escape(name)}$`);
    return numbers(Stats.parse(await this.#get(`/stats?format=json&type=${type}&filter=${filter}`))).get(name) ?? 0;
  }

  async #get(path: string): Promise<unknown> {
    const { status, text } = await this.#ask('GET', path);
    try {
      return JSON.parse(text);
    } catch (error) {
      throw silent(new Error(`${path}: ${status} ${text.slice(0, 200)}`, { cause: error }));
    }
  }

  #ask(method: 'GET' | 'POST', path: string): Promise<{ readonly status: number | undefined; readonly text: string }> {
    return new Promise((resolve, reject) => {
      const fail = (error: Error): void => reject(silent(error));
      const asked = request({ socketPath: this.#socketPath, method, path, timeout: LIMIT_MS }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('error', fail);
        response.on('end', () => resolve({ status: response.statusCode, text }));
      });
      asked.on('timeout', () => asked.destroy(new Error(`no answer within ${LIMIT_MS} ms`)));
      asked.on('error', fail);
      asked.end();
    });
  }
}

const silent = (error: Error): EgressError =>
  new EgressError('ENGINE_FAILED', `Envoy does not answer: ${error.message}`, { cause: error });

const numbers = ({ stats }: z.infer<typeof Stats>): Map<string, number> =>
  new Map(stats.flatMap(({ name, value }) => (name !== undefined && typeof value === 'number' ? [[name, value]] : [])));
