import { createServer, type IncomingMessage } from 'node:http';
import { ask, type Question, Stream, type StreamOptions, type Tally } from './client.ts';
import { type Flow, type FlowOptions, type FlowReport, startFlow } from './flow.ts';

/** The client as a program in a pod: `main.ts PORT`. See pod-client.ts for what it understands. */
const streams = new Map<string, Stream>();
const flows = new Map<string, Flow>();

createServer((request, response) => {
  handle(request).then(
    (value) => response.end(`${JSON.stringify(value)}\n`),
    (error: unknown) => response.writeHead(500).end(`${String(error)}\n`),
  );
}).listen(Number(process.argv[2]), '::');

async function handle(request: IncomingMessage): Promise<unknown> {
  const path = request.url ?? '/';
  const id = path.split('/')[2] ?? '';
  // A pod may be asked as well: it tells who it was.
  if (path === '/who') return { address: (request.socket.remoteAddress ?? '').replace(/^::ffff:/, '') };
  if (path === '/ask') return Promise.all(((await bodyOf(request)) as Question[]).map(ask));
  if (path.startsWith('/flows/')) return handleFlow(request, id);
  if (request.method === 'POST') {
    const { question, ...options } = (await bodyOf(request)) as StreamRequest;
    streams.set(id, new Stream(question, options));
    return {};
  }
  const stream = streams.get(id);
  if (stream === undefined) throw new Error(`no stream ${id}`);
  if (request.method !== 'DELETE') return stream.tally() satisfies Tally;
  streams.delete(id);
  return stream.stop() satisfies Tally;
}

async function handleFlow(request: IncomingMessage, id: string): Promise<FlowReport> {
  if (request.method === 'POST') flows.set(id, startFlow((await bodyOf(request)) as FlowOptions));
  const flow = flows.get(id);
  if (flow === undefined) throw new Error(`no flow ${id}`);
  if (request.method !== 'DELETE') return flow.report();
  flows.delete(id);
  return flow.stop();
}

interface StreamRequest extends StreamOptions {
  readonly question: Question;
}

/** What a test of this repository sent: pod-client.ts has the types. */
async function bodyOf(request: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk;
  return JSON.parse(text);
}
