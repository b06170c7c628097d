/** Objects of the tests of the lab itself. */
import assert from 'node:assert/strict';
import type { Lab } from '../../lab/lab.ts';

/** A container that runs a script. */
export function sh(script: string): object {
  return { name: 'main', image: 'any', command: ['sh', '-c', script] };
}

/** A pod of the namespace default. */
export function pod(name: string, containers: object[], metadata: object = {}, spec: object = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: { terminationGracePeriodSeconds: 1, containers, ...spec },
  };
}

/** A Deployment or DaemonSet whose pods have its name as the label `app`. */
export function workload(
  kind: 'Deployment' | 'DaemonSet',
  name: string,
  spec: object,
  container: object = sh('exec sleep infinity'),
): object {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { terminationGracePeriodSeconds: 1, containers: [container] } };
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name },
    spec: { selector: { matchLabels: labels }, template, ...spec },
  };
}

/** The pods with the label `app`, and where they are. */
export async function podsOf(lab: Lab, app: string): Promise<{ name: string; node: string }[]> {
  const range = '{range .items[*]}{.metadata.name} {.spec.nodeName}{"\\n"}{end}';
  const text = await lab.kubectl(['get', 'pods', '-l', `app=${app}`, '-o', `jsonpath=${range}`]);
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const [name = '', node = ''] = line.split(' ');
      return { name, node };
    });
}

/** The name of the first of them. */
export async function onePod(lab: Lab, app: string): Promise<string> {
  return (await podsOf(lab, app))[0]?.name ?? assert.fail(`no pod of ${app}`);
}
