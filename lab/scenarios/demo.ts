import { dirname, join, relative } from 'node:path';
import { takeDown } from '../down.ts';
import { BadInput, LabFailure } from '../host/failure.ts';
import { type Instance, instanceOf, stateOf } from '../host/instance.ts';
import { interruptible } from '../host/interrupt.ts';
import { type Progress, progressOn } from '../host/progress.ts';
import { install } from '../install.ts';
import { type Lab, startLab } from '../lab.ts';
import { egress, manifests } from './egress.ts';
import { failover } from './failover.ts';
import { type Scenario, type Tell, Unexpected } from './scenario.ts';

/**
 * Brings a lab of its own up, installs the chart, tells the story. The lab stays up, so that one can look around; the
 * next demo replaces it. Whatever fails takes the lab down. Returns the exit code.
 */
export async function demo(): Promise<number> {
  const progress = progressOn(process.stdout);
  const instance = instanceOf('demo');
  try {
    progress.line('Sallyport demo: a real Kubernetes on this machine, nodes and pods as network namespaces');
    await interruptible(
      () => tellAll(instance, progress),
      () => takeDown(instance),
      (signal) => progress.line(`  ${signal}: taking the lab down`),
    );
    return 0;
  } catch (error) {
    if (error instanceof BadInput || error instanceof LabFailure || error instanceof Unexpected) {
      process.stderr.write(`demo: ${error.message}\n${error instanceof LabFailure ? `${error.detail}\n` : ''}`);
      return error instanceof BadInput ? 2 : 1;
    }
    throw error;
  }
}

async function tellAll(instance: Instance, progress: Progress): Promise<void> {
  if (stateOf(instance) === 'up') await progress.step('take the lab of the last demo down', () => takeDown(instance));
  const lab = await startLab({ name: instance.name, progress });
  try {
    const set = ['config.feature.enableIPv6=true'];
    progress.line(`  $ bin/lab install --name ${lab.name} --set ${set.join(' --set ')}`);
    await install({ instance, programs: lab.programs, set, progress });
    await tell(egress, lab);
    await tell(failover(), lab);
  } catch (error) {
    await progress.step('take the lab down', () => lab.down());
    throw error;
  }
  lab.keep();
  process.stdout.write(farewell(lab));
}

async function tell(scenario: Scenario, lab: Lab): Promise<void> {
  process.stdout.write(`\n${scenario.about}\n`);
  const aloud: Tell = {
    typed: (line) => void process.stdout.write(`   $ ${line}\n`),
    printed: (text) => void process.stdout.write(text === '' ? '' : `${text.replaceAll(/^(?=.)/gm, '     ')}\n`),
  };
  for (const [index, step] of scenario.steps.entries()) {
    process.stdout.write(`\n${index + 1}. ${step.title}\n`);
    process.stdout.write(`   => ${await step.act(lab, aloud)}\n`);
  }
}

function farewell(lab: Lab): string {
  const { outside } = lab.status;
  const kubectlFolder = dirname(lab.programs.kubectl);
  const bin = relative(process.cwd(), join(import.meta.dirname, '..', '..', 'bin'));
  return `
The lab "${lab.name}" stays up. To look around:

   export KUBECONFIG=$(${bin}/lab kubeconfig --name ${lab.name}) PATH="$PWD/${bin}:${kubectlFolder}:$PATH"
   kubectl apply -f ${manifests}               # the same gateway and policies again
   kubectl get egressgateways,egresspolicies,egresstunnels -A
   kubectl -n shop exec deploy/orders -- curl -sS http://${outside.ipv4}:${outside.httpPort}/
   kubectl egress why deploy/orders -n shop
   lab exec gateway-1 --name ${lab.name} -- nft list table inet sallyport

To remove it: ${bin}/lab down --name ${lab.name}
`;
}
