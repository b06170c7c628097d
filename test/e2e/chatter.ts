/**
 * A pod that holds on to what it has opened: a TCP connection, a UDP socket and a ping for each family, in use four times a second.
 * What ends is opened again. Nothing speaks to it, and nothing keeps it from starting, so it is there before the agent when its node boots.
 */
import { addresses, ports } from '../../lab/cluster/shape.ts';

const loops = (host: string): readonly string[] => [
  // One chunk, one answer. A connection that is reset ends the inner loop.
  `while sleep 0.2; do exec 4<>/dev/tcp/${host}/${ports.tcp} && while echo ? >&4 && read -r -t 5 -u 4 _; do sleep 0.25; done; done`,
  `until exec 4<>/dev/udp/${host}/${ports.udp}; do sleep 0.2; done; while sleep 0.25; do echo ? >&4; done`,
  `while sleep 0.2; do ping -n -i 0.25 ${host} >&9; done`,
];

/** The manifest of one in namespace shop, with a label `chatter: NAME` for its policy. */
export const chatter = (name: string, nodeName: string): object => {
  const all = [addresses.outside.ipv4, addresses.outside.ipv6].flatMap(loops);
  const script = ["trap '' PIPE", 'exec 9>/dev/null', ...all.map((loop) => `{ ${loop}; } 2>&9 &`), 'wait'].join('\n');
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'shop', name, labels: { chatter: name } },
    spec: {
      nodeName,
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'chatter', image: 'any/image:will-do', command: ['bash', '-c', script] }],
    },
  };
};
