/**
 * Knock asks whether a kernel is there, without its agent: a TCP connection to a port on which nobody listens. A kernel
 * answers it with a reset, at once and without limits of rate, and it needs no capability here, as an ICMP echo would. A
 * port on which somebody does listen answers as well. Silence is no answer.
 */
import { connect, type Socket } from 'node:net';
import type { Clock } from '../../runtime/process/clock.ts';

/** Refused is an answer of the kernel; what the network or our own kernel says about the way there is not. */
const ANSWERS: readonly string[] = ['ECONNREFUSED', 'ECONNRESET'];

/** Knocks at a port of an address and calls back if the kernel there answers within the limit. Never throws. */
export const probeKernel = (
  clock: Clock,
  { address, port, limitMs }: { readonly address: string; readonly port: number; readonly limitMs: number },
  onAnswer: () => void,
): void => {
  const socket: Socket = connect({ host: address, port });
  const cancel = clock.after(limitMs, () => socket.destroy());
  const end = (isAnswered: boolean): void => {
    cancel();
    socket.destroy();
    if (isAnswered) onAnswer();
  };
  socket.once('connect', () => end(true));
  socket.once('error', (error: NodeJS.ErrnoException) => end(ANSWERS.includes(error.code ?? '')));
};
