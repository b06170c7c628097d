import { familyOf, type Ip } from '../../src/core/ip/index.ts';
import { probe } from '../../src/dataplane/announce/frames.ts';
import { isRefusal, loadPacketSockets, type PacketSocket } from '../../src/dataplane/announce/packet-socket.ts';
import { LabFailure } from '../host/failure.ts';
import { instanceOf } from '../host/instance.ts';
import type { Lab } from '../lab.ts';
import { callInside } from '../net/enter.ts';
import { outside } from '../net/fabric.ts';
import { namespacePath } from '../net/namespaces.ts';

const open = await loadPacketSockets();

/**
 * Asks from the router who has addresses, by ARP and neighbour discovery, again and again until stopped. The questions leave no trace
 * with whoever hears them, and are answered by everybody who has the address: an Observer hears the answers as claims.
 */
export function askAll(lab: Lab, ips: readonly Ip[], everyMs: number): () => void {
  const sockets = ips.map((ip): readonly [Ip, PacketSocket] => {
    const opened = callInside(namespacePath(instanceOf(lab.name), outside.name), () => open('eth0', familyOf(ip)));
    if (isRefusal(opened)) throw new LabFailure(`ask for ${ip}: ${opened.why}`);
    return [ip, opened];
  });
  const timer = setInterval(() => {
    for (const [ip, socket] of sockets) {
      // What the observer reads need not fill this socket.
      socket.receive();
      socket.send(probe(ip, socket.mac));
    }
  }, everyMs);
  return () => {
    clearInterval(timer);
    for (const [, socket] of sockets) socket.close();
  };
}
