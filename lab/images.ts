import { join } from 'node:path';
import type { Programs } from './setup/go-build.ts';

/**
 * The lab has no images: an image name without a command in the manifest stands for a program of the machine. Our own
 * image is our own program from the working tree.
 */
export function ownImages(programs: Programs): Record<string, { readonly command: readonly string[] }> {
  return {
    coredns: { command: [programs.coredns] },
    sallyport: { command: [process.execPath, join(import.meta.dirname, '..', 'src', 'main.ts')] },
  };
}
