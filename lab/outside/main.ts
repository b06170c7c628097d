import { resetCounts } from './counts.ts';
import { serve } from './server.ts';

const [http, tcp, udp] = process.argv.slice(2).map(Number);
if (http === undefined || tcp === undefined || udp === undefined)
  throw new Error('usage: main.ts HTTP TCP UDP (ports)');
await resetCounts();
serve({ http, tcp, udp });
