/** Where the configuration comes from: a file that is followed, or the defaults. */
import { Config } from '../api/config.ts';
import { type ConfigDeps, ConfigFile } from '../runtime/config/file.ts';
import type { ConfigSource } from './part.ts';

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
  const { enableIPv4, enableIPv6 } = file.current.feature;
  // The families are those of the start: agents keep theirs until they restart, and must not get what they cannot use.
  const inForce = (config: Config): Config => ({ feature: { ...config.feature, enableIPv4, enableIPv6 } });
  return {
    get current() {
      return inForce(file.current);
    },
    changed: (listener) => file.changed((config) => listener(inForce(config))),
    run: (signal) => file.run(signal),
  };
};
