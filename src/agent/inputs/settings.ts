/** What the configuration means for one node. */
import type { Config } from '../../api/config.ts';
import type { NodeSettings } from '../../core/node/input.ts';
import type { ParentChoice } from '../../dataplane/ip/host.ts';

/** The device that holds EIPs. It is not in the configuration: nobody else has to know its name. */
export const holderName = 'egw-eip';

/** The settings of a node. */
export const nodeSettingsOf = ({ feature }: Config): NodeSettings => ({
  hasIpv4: feature.enableIPv4,
  hasIpv6: feature.enableIPv6,
  device: feature.vxlan.name,
  holder: holderName,
  vxlanId: feature.vxlan.id,
  port: feature.vxlan.port,
  hasChecksums: !feature.vxlan.disableChecksumOffload,
  hasGro: feature.vxlan.enableGRO,
  notAnnounced: feature.announcedInterfacesToExclude.map(interfacePatternOf),
  isStrict: feature.strictPodStart,
});

/**
 * `br-*` was a default here, and is one in the chart of egressgateway: written as a wildcard, it is a regular expression that
 * matches `br0`, `vmbr0` and `br-ex`, which are uplinks. Values files still have it, so it means what it was meant to: Docker.
 */
const interfacePatternOf = (text: string): RegExp => new RegExp(text === 'br-*' ? '^br-[0-9a-f]{12}$' : text);

/** Which interface carries the tunnel of a node with these labels: the first entry that matches, else the method. */
export const parentChoiceOf = ({ feature }: Config, labels: Readonly<Record<string, string>>): ParentChoice => {
  const own = feature.tunnelDetectCustomInterface.find(({ nodeSelector }) =>
    Object.entries(nodeSelector).every(([key, value]) => labels[key] === value),
  );
  const [, named] = feature.tunnelDetectMethod.split('interface=');
  const name = own?.interfaceName ?? named;
  return name === undefined ? { kind: 'defaultRoute' } : { kind: 'interface', name };
};
