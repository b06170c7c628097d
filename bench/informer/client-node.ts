/** Child process: syncs the informer of @kubernetes/client-node as its documentation shows it, and reports. */
import { CoreV1Api, KubeConfig, makeInformer } from '@kubernetes/client-node';
import { report } from './measure.ts';

const config = new KubeConfig();
config.loadFromClusterAndUser({ name: 'bench', server: process.argv[2] ?? '', skipTLSVerify: true }, { name: 'bench' });
const api = config.makeApiClient(CoreV1Api);
const informer = makeInformer(config, '/api/v1/pods', () => api.listPodForAllNamespaces());
const startMs = performance.now();
await informer.start();
await report(informer.list().length, performance.now() - startMs);
process.exit(0);
