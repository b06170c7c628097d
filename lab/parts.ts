import { join } from 'node:path';
import { type ControlPlanePart, labSite, untilApiReady } from './cluster/control-plane.ts';
import { shapeSchema } from './cluster/shape.ts';
import { LabFailure } from './host/failure.ts';
import type { Instance, InstanceRecord } from './host/instance.ts';
import { end } from './host/processes.ts';
import type { Programs } from './setup/go-build.ts';
import { startPart } from './up.ts';

/** Kills a part of the control plane and starts it again; an API server is awaited until it is ready. */
export async function restartPart(
  instance: Instance,
  record: InstanceRecord,
  part: ControlPlanePart,
  programs: Programs,
): Promise<void> {
  const running = record.processes[part];
  if (running !== undefined) await end([running], 0);
  const { families } = shapeSchema.parse(record.shape);
  const site = labSite(instance.folder, programs, families);
  const process = startPart(instance, part, site);
  if (part !== 'kube-apiserver') return;
  if (record.relay === undefined) throw new LabFailure(`lab "${instance.name}" has no relay`);
  const logFile = join(instance.folder, `${part}.log`);
  await untilApiReady({ pki: site.pki, port: record.relay.port, limitMs: 60_000, process, logFile });
}
