import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { Config, configSchema } from './config.ts';
import { faultsOf } from './sentence.ts';

const example = join(import.meta.dirname, '..', '..', 'docs', 'examples', 'configuration.yaml');

/** What a user would read, one line per fault. */
function refusalOf(value: unknown): string {
  const { error } = Config.safeParse(value);
  assert.ok(error, 'the configuration is refused');
  return faultsOf(error, configSchema(), value)
    .map(({ sentence }) => sentence)
    .join('\n');
}

describe('Config', () => {
  test('fills in every default; the example in the docs shows them all', () => {
    assert.deepEqual(Config.parse(parse(readFileSync(example, 'utf8'))), Config.parse({}));
  });

  test('takes the block of the seeds', () => {
    const { feature } = Config.parse({
      feature: {
        egressIgnoreCIDR: { autoDetect: { podCIDR: '', clusterIP: true, nodeIP: true }, custom: ['10.6.1.0/24'] },
      },
    });
    assert.deepEqual(feature.egressIgnoreCIDR.custom, ['10.6.1.0/24']);
  });

  const faults: readonly (readonly [unknown, string])[] = [
    [{ feature: { vxlan: { port: 70000 } } }, 'feature.vxlan.port is 70000: allowed is a whole number from 1 to 65535'],
    [{ feature: { vxlan: { port: 1.5 } } }, 'feature.vxlan.port is 1.5: allowed is a whole number from 1 to 65535'],
    [
      { feature: { vxlan: { prot: 1 } } },
      'feature.vxlan.prot is not a known key: allowed here are name, id, port, disableChecksumOffload, enableGRO',
    ],
    [{ features: {} }, 'features is not a known key: allowed here are feature'],
    [{ feature: { enableIPv4: 'yes' } }, 'feature.enableIPv4 is "yes": allowed is true or false'],
    [{ feature: { enableIPv4: false } }, 'feature: enableIPv4 and enableIPv6 must not both be false'],
    [
      { feature: { egressIgnoreCIDR: { autoDetect: { podCIDR: 'flannel' } } } },
      'feature.egressIgnoreCIDR.autoDetect.podCIDR is "flannel": allowed is one of "", "k8s", "calico", "auto"',
    ],
    [
      { feature: { tunnelIpv4Subnet: 'fd00::/8' } },
      'feature.tunnelIpv4Subnet is "fd00::/8": must be an IPv4 CIDR such as 172.31.0.0/16',
    ],
    [
      { feature: { tunnelDetectMethod: 'interface=' } },
      'feature.tunnelDetectMethod is "interface=": must be "defaultRouteInterface" or "interface=" and the name of an interface',
    ],
    [
      { feature: { vxlan: { name: 'a" drop' } } },
      'feature.vxlan.name is "a\\" drop": must be the name of a network interface, at most 15 letters, digits, ".", "_" and "-"',
    ],
    [
      { feature: { tunnelDetectCustomInterface: [{ nodeSelector: {} }] } },
      'feature.tunnelDetectCustomInterface[0].interfaceName is missing: allowed is a text',
    ],
    [
      { feature: { announcedInterfacesToExclude: ['('] } },
      'feature.announcedInterfacesToExclude[0] is "(": must be a regular expression such as "^cali.*"',
    ],
    [
      { feature: { maxNumberEndpointPerSlice: 0 } },
      'feature.maxNumberEndpointPerSlice is 0: allowed is a whole number from 1 to 1000',
    ],
    [['feature'], 'the whole is ["feature"]: allowed is a mapping with the keys feature'],
  ];
  for (const [value, sentence] of faults) {
    test(`says: ${sentence}`, () => assert.equal(refusalOf(value), sentence));
  }

  test('names every fault at once', () => {
    const message = refusalOf({ feature: { enableIPv6: 1, vxlan: { id: 0 } } });
    assert.match(message, /^feature\.enableIPv6 is 1.*\nfeature\.vxlan\.id is 0/);
  });

  test('does not repeat a long value in full', () => {
    assert.ok(refusalOf({ feature: { vxlan: { name: 'x'.repeat(5000) } } }).length < 300);
  });

  test('describes every key', () => {
    const silent = JSON.stringify(configSchema(), (key, value) =>
      key === 'properties' && Object.values(value).some((child) => !Object.hasOwn(Object(child), 'description'))
        ? 'no description'
        : value,
    );
    assert.ok(!silent.includes('no description'), silent);
  });
});
