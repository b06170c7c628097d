import { it } from 'node:test';
import fc from 'fast-check';
import { assertTurnsInto, describeNftables } from '../../src/dataplane/nft/testing/conformance.ts';
import { TABLE_NUMBERS, tableFrom } from '../../src/dataplane/nft/testing/tables.ts';
import { openKernelMachine } from './nft-machine.ts';

let opened = 0;

for (const hasLibrary of [false, true]) {
  const means = hasLibrary ? 'through its library' : 'through the program';
  describeNftables(`nftables on the kernel, ${means}`, () => {
    opened += 1;
    return openKernelMachine(`nft${opened}`, { hasLibrary });
  });

  it(`the kernel turns any table into any other, ${means}`, () => assertLaw(hasLibrary));
}

const assertLaw = async (hasLibrary: boolean): Promise<void> => {
  await using machine = await openKernelMachine(`law${hasLibrary}`, { hasLibrary });
  const table = fc.array(fc.nat(), { minLength: TABLE_NUMBERS, maxLength: TABLE_NUMBERS }).map(tableFrom);
  await fc.assert(
    fc.asyncProperty(table, table, (before, after) => assertTurnsInto(machine, before, after)),
    { numRuns: 15 },
  );
};
