/**
 * RuleStore is what a replica served last, in a file of its pod: a process that ends while the API server is away starts
 * with it. The revision is a hash of the rules, so a file that is not whole, or was changed by somebody, is not used.
 */
import { readFile, rename, writeFile } from 'node:fs/promises';
import { ruleSetOf } from '../core/proxy/plan.ts';
import type { RuleSet } from '../core/proxy/served.ts';
import type { DesiredRules } from './desired.ts';

export interface RuleStore {
  /** What was written last for this controller; undefined when there is nothing that can be used. */
  read(controller: string): Promise<DesiredRules | undefined>;
  write(wanted: DesiredRules): Promise<void>;
}

/** Kept in a file, which is replaced in one step. */
export const fileRuleStore = (file: string): RuleStore => ({
  async read(controller) {
    const text = await readFile(file, 'utf8').catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '';
      throw error;
    });
    return desiredRulesOf(text, controller);
  },
  async write(wanted) {
    await writeFile(`${file}.new`, textOf(wanted));
    await rename(`${file}.new`, file);
  },
});

/** Kept as long as the value lives. */
export const memoryRuleStore = (): RuleStore => {
  let text = '';
  return {
    read: async (controller) => desiredRulesOf(text, controller),
    write: async (wanted) => {
      text = textOf(wanted);
    },
  };
};

const textOf = ({ rules, egresses }: DesiredRules): string => JSON.stringify({ rules, egresses: [...egresses] });

const desiredRulesOf = (text: string, controller: string): DesiredRules | undefined => {
  try {
    // Checked by its own hash right below: what has the revision was written by this file.
    const { rules, egresses } = JSON.parse(text) as { rules: RuleSet; egresses: [string, number][] };
    const { revision } = ruleSetOf(controller, rules.rules, rules.forbidden);
    return rules.revision === revision ? { rules, egresses: new Map(egresses) } : undefined;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return undefined;
    throw error;
  }
};
