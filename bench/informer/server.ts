/** Child process: serves COUNT pods from the in-memory API server and prints its URL. */
import { coreResource } from '../../src/runtime/kube/resource.ts';
import { startTestApiServer } from '../../src/runtime/testing/api-server.ts';
import { makePod } from './pod.ts';

const pods = coreResource('pods', 'Pod', true);
const count = Number(process.argv[2]);
const server = await startTestApiServer({ resources: [pods] });
let bytes = 0;
for (let index = 0; index < count; index += 1) bytes += JSON.stringify(server.put(pods, makePod(index))).length;
console.log(JSON.stringify({ url: server.url, averageBytes: Math.round(bytes / count) }));
