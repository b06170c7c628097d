/**
 * The lab has no images: the name of an image without a command in the manifest stands for a program of the machine. Our
 * own image is the bundle of the working tree, as people would run it.
 */
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundle } from '../tools/bundle.ts';
import { imageTable } from './cluster/node.ts';
import { LabFailure } from './host/failure.ts';
import type { Instance } from './host/instance.ts';
import type { Programs } from './setup/go-build.ts';

type Images = Readonly<Record<string, { readonly command: readonly string[] }>>;

/** Writes what a lab needs before anything of ours is installed in it. */
export function writeBaseImages(instance: Instance, programs: Programs): void {
  writeTable(instance, baseImages(programs));
}

/**
 * Makes our own image from the working tree and returns its digest. Containers that run keep the one they were started
 * with; the next ones get this one.
 */
export async function writeOwnImage(instance: Instance, programs: Programs): Promise<string> {
  const unfinished = join(instance.folder, `image.${process.pid}.new`);
  const { main, digest } = await bundle(unfinished).catch((error: unknown): never => {
    rmSync(unfinished, { recursive: true, force: true });
    throw new LabFailure(`the working tree cannot be made into an image: ${error}`);
  });
  const folder = join(instance.folder, `image-${digest.slice(0, 16)}`);
  if (existsSync(folder)) rmSync(unfinished, { recursive: true });
  else renameSync(unfinished, folder);
  const command = [process.execPath, main.replace(unfinished, folder)];
  writeTable(instance, { ...baseImages(programs), sallyport: { command } });
  return `sha256:${digest}`;
}

const baseImages = ({ coredns }: Programs): Images => ({ coredns: { command: [coredns] } });

/** Replaces the table in one step: kubelets read it for each container. */
function writeTable(instance: Instance, images: Images): void {
  const unfinished = `${imageTable(instance)}.${process.pid}.new`;
  writeFileSync(unfinished, `${JSON.stringify(images, null, 2)}\n`);
  renameSync(unfinished, imageTable(instance));
}
