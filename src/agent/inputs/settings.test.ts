import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Config } from '../../api/config.ts';
import { nodeSettingsOf, parentChoiceOf } from './settings.ts';

const config = (feature: object) => Config.parse({ feature });

describe('settings of a node', () => {
  it('come from the configuration', () => {
    const settings = nodeSettingsOf(
      config({
        enableIPv6: true,
        tunnelIpv4Subnet: '10.200.0.0/20',
        tunnelIpv6Subnet: 'fd22::/100',
        vxlan: { name: 'tun0', id: 7, port: 4790, disableChecksumOffload: true, enableGRO: true },
        announcedInterfacesToExclude: ['^docker'],
      }),
    );
    assert.deepEqual(settings, {
      hasIpv4: true,
      hasIpv6: true,
      device: 'tun0',
      holder: 'egw-eip',
      vxlanId: 7,
      port: 4790,
      hasChecksums: false,
      hasGro: true,
      notAnnounced: [/^docker/],
      isStrict: false,
    });
  });

  for (const [written, exclude] of [
    ['by default', {}],
    ['with br-* of older values files', { announcedInterfacesToExclude: ['^cali.*', 'br-*'] }],
  ] as const) {
    it(`exclude bridges of Docker and no uplink that is a bridge, ${written}`, () => {
      const { notAnnounced } = nodeSettingsOf(config(exclude));
      const names = ['br0', 'vmbr0', 'br-ex', 'br-lan', 'eth0', 'br-0123456789ab', 'cali1234'];
      const excluded = names.filter((name) => notAnnounced.some((pattern) => pattern.test(name)));
      assert.deepEqual(excluded, ['br-0123456789ab', 'cali1234']);
    });
  }

  it('choose the interface of the tunnel: the first entry that matches the labels, else the method', () => {
    const named = config({
      tunnelDetectMethod: 'interface=eth1',
      tunnelDetectCustomInterface: [
        { nodeSelector: { rack: 'a', disk: 'ssd' }, interfaceName: 'bond0' },
        { nodeSelector: { rack: 'a' }, interfaceName: 'eth2' },
      ],
    });
    assert.deepEqual(parentChoiceOf(config({}), {}), { kind: 'defaultRoute' });
    assert.deepEqual(parentChoiceOf(named, {}), { kind: 'interface', name: 'eth1' });
    assert.deepEqual(parentChoiceOf(named, { rack: 'a' }), { kind: 'interface', name: 'eth2' });
    assert.deepEqual(parentChoiceOf(named, { rack: 'a', disk: 'ssd' }), { kind: 'interface', name: 'bond0' });
    assert.deepEqual(parentChoiceOf(named, { rack: 'b' }), { kind: 'interface', name: 'eth1' });
  });
});
