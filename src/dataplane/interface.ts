/** What the kernel says about an interface that somebody names (netdevice(7)), and one setting. Any socket will do to ask. */
import { networkInterfaces } from 'node:os';
import { type Libc, SOCK_CLOEXEC } from './libc.ts';

// From the headers of Linux; alike on x86_64 and arm64.
const SIOCGIFNAME = 0x8910;
const SIOCGIFFLAGS = 0x8913;
const SIOCGIFHWADDR = 0x8927;
const SIOCGIFINDEX = 0x8933;
const SIOCETHTOOL = 0x8946;
const ETHTOOL_GGRO = 0x2b;
const ETHTOOL_SGRO = 0x2c;
const IFF_RUNNING = 0x40;
const ARPHRD_ETHER = 1;
const AF_INET = 2;
const SOCK_DGRAM = 2;
// The kernel's struct ifreq: the name, then what was asked for.
const NAME_BYTES = 16;
const REQUEST_BYTES = 40;

/** The number of an interface; undefined when there is none of that name, and then `errno` says so. */
export const indexOfInterface = (libc: Libc, socket: number, name: string): number | undefined =>
  ask(libc, socket, SIOCGIFINDEX, name)?.readInt32LE();

/** The name of the interface that has a number; undefined when there is none. */
export const nameOfInterface = (libc: Libc, socket: number, index: number): string | undefined => {
  const bytes = Buffer.alloc(REQUEST_BYTES);
  bytes.writeInt32LE(index, NAME_BYTES);
  return libc.ioctl(socket, SIOCGIFNAME, bytes) < 0 ? undefined : bytes.toString('utf8', 0, bytes.indexOf(0));
};

/** The MAC address of an interface, empty when it is none for Ethernet; undefined as `indexOfInterface`. */
export const macOfInterface = (libc: Libc, socket: number, name: string): string | undefined => {
  const answer = ask(libc, socket, SIOCGIFHWADDR, name);
  if (answer === undefined) return undefined;
  return answer.readUInt16LE() === ARPHRD_ETHER ? answer.toString('hex', 2, 8).replace(/..(?!$)/g, '$&:') : '';
};

/** Whether a MAC address is that of an interface of this machine; one without any IP address is not found. */
export const isOwnMac = (mac: string): boolean =>
  Object.values(networkInterfaces()).some((addresses) => addresses?.some((address) => address.mac === mac));

/** Whether an interface is up and has a carrier; false when there is none of that name, true when nobody can be asked. */
export const hasCarrier = (libc: Libc, name: string): boolean => {
  const socket = libc.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return true;
  const answer = ask(libc, socket, SIOCGIFFLAGS, name);
  libc.close(socket);
  return answer !== undefined && (answer.readUInt16LE() & IFF_RUNNING) !== 0;
};

/** Whether the kernel joins packets that arrive on an interface (GRO); undefined as `indexOfInterface`. */
export const groOfInterface = (libc: Libc, socket: number, name: string): boolean | undefined => {
  const answer = ethtool(libc, socket, name, ETHTOOL_GGRO, 0);
  return answer && answer.readUInt32LE(4) === 1;
};

/** Sets it. True: it is so now. What is so already is not set again, because each time everybody who watches is told. */
export const setGroOfInterface = (libc: Libc, socket: number, name: string, isOn: boolean): boolean =>
  groOfInterface(libc, socket, name) === isOn || ethtool(libc, socket, name, ETHTOOL_SGRO, isOn ? 1 : 0) !== undefined;

/** The answer to a command of ethtool that takes one number: the command, and the number. */
const ethtool = (libc: Libc, socket: number, name: string, command: number, number: number): Buffer | undefined => {
  const value = Buffer.alloc(8);
  value.writeUInt32LE(command);
  value.writeUInt32LE(number, 4);
  const request = Buffer.alloc(REQUEST_BYTES);
  if (Buffer.byteLength(name) < NAME_BYTES) request.write(name);
  request.writeBigUInt64LE(libc.addressOf(value), NAME_BYTES);
  return libc.ioctl(socket, SIOCETHTOOL, request) < 0 ? undefined : value;
};

const ask = (libc: Libc, socket: number, request: number, name: string): Buffer | undefined => {
  const bytes = Buffer.alloc(REQUEST_BYTES);
  // The kernel would cut a name that is too long, and answer for another interface. None has the empty name.
  if (Buffer.byteLength(name) < NAME_BYTES) bytes.write(name);
  return libc.ioctl(socket, request, bytes) < 0 ? undefined : bytes.subarray(NAME_BYTES);
};
