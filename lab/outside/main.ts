import { ports } from '../cluster/shape.ts';
import { resetCounts } from './counts.ts';
import { serveFlows } from './flows.ts';
import { serve } from './server.ts';
import { createOutsideTls } from './tls.ts';
import { serveWeb } from './web.ts';

const [authorityFile] = process.argv.slice(2);
if (authorityFile === undefined) throw new Error('usage: main.ts FILE (for the certificate of the authority)');
await resetCounts();
serve(ports);
serveFlows(ports.flows);
serveWeb(ports, await createOutsideTls(authorityFile));
