import { takeDown } from '../down.ts';
import { BadInput, LabFailure } from '../host/failure.ts';
import { instanceOf } from '../host/instance.ts';
import { interruptible } from '../host/interrupt.ts';
import { progressOn } from '../host/progress.ts';
import { type Lab, startLab } from '../lab.ts';
import { type Scenario, Unexpected } from './scenario.ts';
import { wayOut } from './way-out.ts';

const scenarios: readonly Scenario[] = [wayOut];

/** Brings a lab of its own up, tells every scenario in it, takes it down. Returns the exit code. */
export async function demo(): Promise<number> {
  const progress = progressOn(process.stdout);
  const instance = instanceOf('demo');
  try {
    progress.line('Sallyport demo: a real Kubernetes on this machine, nodes and pods as network namespaces');
    await interruptible(
      async () => {
        const lab = await startLab({ name: instance.name, progress });
        try {
          for (const scenario of scenarios) await tell(scenario, lab);
        } finally {
          await progress.step('take the lab down', () => lab.down());
        }
      },
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

async function tell(scenario: Scenario, lab: Lab): Promise<void> {
  process.stdout.write(`\n${scenario.about}\n\n`);
  for (const [index, step] of scenario.steps.entries()) {
    process.stdout.write(`  ${index + 1}. ${step.title}\n`);
    process.stdout.write(`     ${await step.act(lab)}\n`);
  }
  process.stdout.write('\n');
}
