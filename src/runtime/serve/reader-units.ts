/** Who may read the pages of a process, from its command line. */
import { type ConnectOptions, connect } from '../kube/connect.ts';
import { systemClock } from '../process/clock.ts';
import { type Lifecycle, onStop } from '../process/lifecycle.ts';
import { type MayRead, Readers } from './readers.ts';

/** `token`: pages other than health need one. `none`: whoever reaches the port may read. */
export type PageAuth = 'token' | 'none';

const rateLimit = { perSecond: 5, burst: 10 };

/** Undefined when everybody may read. The client that asks the API server ends with the process. */
export const readersOf = async (
  auth: PageAuth,
  options: Omit<ConnectOptions, 'rateLimit'>,
  lifecycle: Pick<Lifecycle, 'start'>,
): Promise<MayRead | undefined> => {
  if (auth === 'none') return undefined;
  const client = await connect({ ...options, rateLimit });
  lifecycle.start('readers', (signal) => onStop(signal, () => client.close()));
  return new Readers({ client, clock: systemClock }).mayRead;
};
