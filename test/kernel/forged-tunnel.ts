/** A tunnel packet as anybody can write one: VXLAN with a slot of the writer's choice, sent by an ordinary UDP socket. */
import type { Namespace } from './namespace.ts';
import { addresses, macs } from './nft-network.ts';

/** Who sends a forged packet, and what it says. */
export interface Forgery {
  readonly from: Namespace;
  /** The outer source, an address of the sender; chosen by its kernel where absent. */
  readonly as?: string;
  readonly to: string;
  readonly port?: number;
  /** The inner sender. */
  readonly mac?: string;
}

const VNI = 100;
const SLOT = 1;
const PORT = 7789;

/** Sends one packet; resolves when it is gone. */
export const forge = async ({ from, as, to, port = PORT, mac = macs.worker }: Forgery): Promise<void> => {
  const family = to.includes(':') ? 6 : 4;
  const bind = as === undefined ? '' : `, '${as}'`;
  const script = `const s = require('node:dgram').createSocket('udp${family}');
    s.bind(0${bind}, () => s.send(Buffer.from('${packetFrom(mac)}', 'hex'), ${port}, '${to}', (e) => { s.close(); if (e) throw e; }))`;
  await from.must(process.execPath, '-e', script);
};

/** VXLAN header with group policy, Ethernet, IPv4 and UDP: from the pod to the outside. */
const packetFrom = (mac: string): string => {
  const vxlan = Buffer.alloc(8);
  vxlan.writeUInt16BE(0x8800, 0);
  vxlan.writeUInt16BE(SLOT, 2);
  vxlan.writeUInt32BE(VNI << 8, 4);
  const ethernet = Buffer.from(`${macs.gateway}${mac}0800`.replaceAll(':', ''), 'hex');
  // 32 bytes of UDP, not in pieces, and no checksum yet.
  const start = Buffer.from('450000200001000040110000', 'hex');
  const header = Buffer.concat([start, bytesOf(addresses[4].pod), bytesOf(addresses[4].outside)]);
  header.writeUInt16BE(checksumOf(header), 10);
  // Ports, length, and no checksum.
  const udp = Buffer.from('12340009000c000061626364', 'hex');
  return Buffer.concat([vxlan, ethernet, header, udp]).toString('hex');
};

const bytesOf = (ip: string): Buffer => Buffer.from(ip.split('.').map(Number));

const checksumOf = (header: Buffer): number => {
  let sum = 0;
  for (let at = 0; at < header.length; at += 2) sum += header.readUInt16BE(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
};
