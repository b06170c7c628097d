import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type AgentFlags, agentDefaults, readAgentFlags } from './flags.ts';

const read = (flags: Partial<AgentFlags>, env: { NODE_NAME?: string } = { NODE_NAME: 'worker-1' }) =>
  readAgentFlags({ ...agentDefaults, ...flags }, env);

describe('readAgentFlags', () => {
  it('needs the name of the node and has defaults for everything else', () => {
    assert.deepEqual(read({}), {
      node: 'worker-1',
      namespace: 'sallyport',
      configPath: undefined,
      kubeconfigPath: undefined,
      health: { port: 8081 },
      pageAuth: 'none',
      stateFolder: '/run/sallyport',
      sysctlRoot: '/proc/sys',
      logLevel: 'info',
    });
  });

  it('takes the name from the flag before the environment', () => {
    assert.equal(read({ nodeName: 'ip-10-0-0-1.internal' }).node, 'ip-10-0-0-1.internal');
  });

  it('cleans without a name', () => {
    assert.equal(read({ clean: true }, {}).node, '');
  });

  const refused: readonly [Partial<AgentFlags>, RegExp][] = [
    [{ nodeName: '' }, /^--node-name is "": allowed is the name of the Node/],
    [{ nodeName: '../a' }, /^--node-name is "..\/a"/],
    [{ stateFolder: 'run' }, /^--state-folder is "run": allowed is an absolute path/],
    [{ sysctlRoot: '' }, /^--sysctl-root is "": allowed is an absolute path/],
    [{ healthAddress: '80' }, /^--health-address is "80"/],
    [{ logLevel: 'loud' }, /^--log-level is "loud"/],
  ];
  for (const [flags, sentence] of refused) {
    it(`refuses ${JSON.stringify(flags)} with one sentence`, () => {
      assert.throws(() => read(flags), { code: 'CONFIG_INVALID', message: sentence });
    });
  }
});
