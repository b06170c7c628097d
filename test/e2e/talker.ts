/**
 * A pod that speaks to the outside all the time, over both families, and that its kubelet starts only when the agent of the
 * node is ready: it has the volume of docs/how-to/strict-start.md. Nothing speaks to it, so it may be on a node that is rebooted.
 */
import { addresses, ports } from '../../lab/cluster/shape.ts';

/** Asks until an answer comes, or for ever; another question every so many seconds. */
export const asking = (host: string, until: 'answered' | 'killed', everySeconds: number): string => {
  const ask = `exec 3<>/dev/udp/${host}/${ports.udp} && echo ? >&3 && read -r -t ${everySeconds} -u 3 -N 1 _`;
  return until === 'answered' ? `until ${ask}; do :; done` : `while :; do ${ask}; done`;
};

/** The manifest of one in namespace shop, under the policies of team shop. */
export const talker = (name: string, nodeName: string): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: 'shop', name, labels: { team: 'shop' } },
  spec: {
    nodeName,
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        name: 'talker',
        image: 'any/image:will-do',
        command: [
          'bash',
          '-c',
          `${asking(addresses.outside.ipv4, 'killed', 0.02)} & ${asking(addresses.outside.ipv6, 'killed', 0.02)}`,
        ],
        volumeMounts: [{ name: 'sallyport-ready', mountPath: '/run/sallyport-ready', readOnly: true }],
      },
    ],
    volumes: [{ name: 'sallyport-ready', hostPath: { path: '/run/sallyport/ready', type: 'File' } }],
  },
});
