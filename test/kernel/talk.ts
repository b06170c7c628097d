/**
 * Two that talk, as programs for network namespaces: a server, and clients with a port of their own.
 *
 *   talk.ts server ADDRESS              TCP and UDP port 80; prints the address and port of each client
 *   talk.ts KIND ADDRESS PORT           prints a line for whatever it gets
 *   talk.ts visit ADDRESS RATE          makes that many short TCP connections a second; prints how many it made
 *
 * KIND is `pong` (TCP, says something whenever it hears something), `pour` (TCP, asks once and only hears from then on), `drip`
 * (the same over UDP), `ask` (UDP, asks for ever) or `bye` (TCP, asks the server to close, so that the port is free again at once).
 */
import { createSocket } from 'node:dgram';
import { connect, createServer, isIPv6, type Socket } from 'node:net';

const PORT = 80;
const EVERY_MS = 20;
const [role = '', address = '', port = '0'] = process.argv.slice(2);
const print = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const serve = (): void => {
  createServer((socket: Socket) => {
    print(`tcp ${socket.remoteAddress} ${socket.remotePort}`);
    socket.setNoDelay(true);
    let timer: NodeJS.Timeout | undefined;
    socket.on('data', (data) => {
      if (data.toString() === 'bye') socket.end();
      else if (data.toString() === 'pour') timer ??= setInterval(() => socket.write('drop'), EVERY_MS);
      else setTimeout(() => socket.write('pong'), EVERY_MS);
    });
    socket.on('error', () => {});
    socket.on('close', () => clearInterval(timer));
  }).listen(PORT, address);
  const udp = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
  const known = new Set<string>();
  udp.on('message', (_, from) => {
    const who = `${from.address} ${from.port}`;
    if (known.has(who)) return;
    known.add(who);
    print(`udp ${who}`);
    setInterval(() => udp.send('drop', from.port, from.address), EVERY_MS);
  });
  udp.bind(PORT, address, () => print('listening'));
};

/** Each connection says something, hears something and ends. */
const visit = (perSecond: number): void => {
  let [due, made] = [0, 0];
  let lastMs = performance.now();
  setInterval(() => {
    const nowMs = performance.now();
    due += ((nowMs - lastMs) / 1_000) * perSecond;
    lastMs = nowMs;
    for (; due >= 1; due -= 1) {
      const socket = connect(PORT, address, () => socket.write('ping'));
      socket.on('data', () => socket.end());
      socket.on('error', (error) => print(`broken: ${error.message}`));
      socket.on('close', () => {
        made += 1;
      });
    }
  }, 5);
  setInterval(() => print(String(made)), 1_000);
};

if (role === 'server') serve();
else if (role === 'visit') visit(Number(port));
else if (role === 'drip' || role === 'ask') {
  const udp = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
  // The first packet may be lost while neighbours get to know each other.
  const asking = setInterval(() => udp.send('drip', PORT, address), EVERY_MS);
  udp.on('message', () => {
    if (role === 'drip') clearInterval(asking);
    print('heard');
  });
  udp.bind(Number(port));
} else {
  const socket = connect({ host: address, port: PORT, localPort: Number(port) }, () => socket.write(role));
  socket.setNoDelay(true);
  socket.on('data', () => {
    print('heard');
    if (role === 'pong') socket.write('ping');
  });
  socket.on('error', (error) => print(`broken: ${error.message}`));
  socket.on('close', () => print('closed'));
}
