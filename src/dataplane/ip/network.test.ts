import { networkConformance } from './testing/conformance.ts';
import { createFakeKernel } from './testing/fake-kernel.ts';
import type { World } from './testing/node.ts';
import { watchConformance } from './testing/watch-conformance.ts';

const open = async (): Promise<World> => ({
  programs: createFakeKernel().programs,
  [Symbol.asyncDispose]: async () => {},
});

networkConformance('fake kernel', open);
watchConformance('fake kernel', open);
