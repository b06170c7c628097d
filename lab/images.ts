/**
 * The lab has no images: the name of an image without a command in the manifest stands for a program of the machine. Our
 * own image is the bundle of the working tree, as people would run it.
 */
import { copyFileSync, existsSync, linkSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { bundle } from '../tools/bundle.ts';
import { imageTable } from './cluster/node.ts';
import { LabFailure } from './host/failure.ts';
import type { Instance } from './host/instance.ts';
import type { Programs } from './setup/go-build.ts';

interface Image {
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}
type Images = Readonly<Record<string, Image>>;

/** Where a container looks for programs; an image with an engine has the engine's folder before it. */
const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

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
  // The images of the proxy are our own image and an engine.
  const withEngine = (engine: string): Image => ({ command, env: { PATH: `${dirname(engine)}:${defaultPath}` } });
  writeTable(instance, {
    ...baseImages(programs),
    sallyport: { command },
    'sallyport-proxy-envoy': withEngine(envoyFor(instance, programs)),
    'sallyport-proxy-nginx': withEngine(programs.nginx),
  });
  return `sha256:${digest}`;
}

/** Envoy where every user may run it: the cache folder is in the home of one of them. */
function envoyFor(instance: Instance, programs: Programs): string {
  const program = join(instance.folder, 'envoy', 'envoy');
  if (existsSync(program)) return program;
  mkdirSync(dirname(program), { recursive: true });
  try {
    linkSync(programs.envoy, program);
  } catch {
    // Not on the same file system.
    copyFileSync(programs.envoy, program);
  }
  return program;
}

const baseImages = ({ coredns }: Programs): Images => ({ coredns: { command: [coredns] } });

/** Replaces the table in one step: kubelets read it for each container. */
function writeTable(instance: Instance, images: Images): void {
  const unfinished = `${imageTable(instance)}.${process.pid}.new`;
  writeFileSync(unfinished, `${JSON.stringify(images, null, 2)}\n`);
  renameSync(unfinished, imageTable(instance));
}
