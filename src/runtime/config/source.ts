/** Where the configuration of a process comes from: a file that is followed, or the defaults. */
import { Config } from '../../api/config.ts';
import { type ConfigDeps, ConfigFile } from './file.ts';

/** The configuration in force, which may change while the process runs. */
export interface ConfigSource {
  readonly current: Config;
  /** Calls back with every new configuration; the returned function ends that. */
  changed(listener: (config: Config) => void): () => void;
}

/** A configuration with the loop that follows its file. */
export interface FollowedConfig extends ConfigSource {
  run(signal: AbortSignal): Promise<void>;
}

/** Opens the file, or takes the defaults without one; throws CONFIG_INVALID with one sentence. */
export const openConfig = async (path: string | undefined, deps: ConfigDeps): Promise<FollowedConfig> => {
  if (path === undefined) {
    return { current: Config.parse({}), changed: () => () => {}, run: async () => {} };
  }
  const file = await ConfigFile.open(path, Config, deps);
  const { enableIPv4, enableIPv6, vxlan } = file.current.feature;
  let made: { readonly from: Config; readonly config: Config } | undefined;
  // The families and the tunnel device are those of the start, in every process: a controller that gave out what agents
  // cannot use yet, or an agent that made its device anew before the others, would cut traffic off.
  const inForce = (from: Config): Config => {
    // The same value while nothing changes: planners remember by identity what they made of it.
    if (made?.from !== from) made = { from, config: { feature: { ...from.feature, enableIPv4, enableIPv6, vxlan } } };
    return made.config;
  };
  return {
    get current() {
      return inForce(file.current);
    },
    changed: (listener) => file.changed((config) => listener(inForce(config))),
    run: (signal) => file.run(signal),
  };
};
