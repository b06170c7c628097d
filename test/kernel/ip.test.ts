/** The network module against Linux. This kernel has no dummy device, so EIPs are on a bridge here. */
import { networkConformance } from '../../src/dataplane/ip/testing/conformance.ts';
import type { World } from '../../src/dataplane/ip/testing/node.ts';
import { watchConformance } from '../../src/dataplane/ip/testing/watch-conformance.ts';
import { openNamespace } from './namespace.ts';

let worlds = 0;

const open = (): Promise<World> => {
  worlds += 1;
  return openNamespace(`ip${worlds}`);
};

networkConformance('Linux', open);
watchConformance('Linux', open);
