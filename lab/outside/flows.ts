import { createServer, type Server, type Socket } from 'node:net';

/**
 * The server for flows in one direction. The client says in its first line what it wants: `upload EVERY` is read to its end and
 * then answered with the number of bytes; `download EVERY` is sent something every few milliseconds until the client goes.
 */
export function serveFlows(port: number): Server {
  return createServer({ allowHalfOpen: true }, (socket) => {
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    let head = '';
    const readHead = (data: Buffer): void => {
      // One byte per character, so that positions in text and in bytes are the same.
      head += data.toString('latin1');
      const end = head.indexOf('\n');
      if (end < 0) return;
      socket.off('data', readHead);
      const [kind, everyMs] = head.slice(0, end).split(' ');
      if (kind === 'upload') countBytes(socket, head.length - end - 1);
      else sendOn(socket, Number(everyMs));
    };
    socket.on('data', readHead);
  }).listen(port, '::');
}

function countBytes(socket: Socket, already: number): void {
  let bytes = already;
  socket.on('data', (data) => {
    bytes += data.length;
  });
  socket.on('end', () => socket.end(`${bytes}\n`));
}

function sendOn(socket: Socket, everyMs: number): void {
  const timer = setInterval(() => {
    // A client that is gone without a word must not fill the memory of the server.
    if (socket.writableLength < 1_000_000) socket.write(Buffer.alloc(512, 'x'));
  }, everyMs);
  socket.on('end', () => socket.destroy());
  socket.on('close', () => clearInterval(timer));
}
