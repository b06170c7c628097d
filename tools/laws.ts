/**
 * Loaded before the tests of a check: how long the laws of fast-check may take. A law that breaks is worth a small example, but
 * looking for the smallest one took longer than everything else together, and a step that is ended says nothing at all. On a
 * machine with much else to do a law that holds is tried less often instead.
 */
import fc from 'fast-check';

fc.configureGlobal({ interruptAfterTimeLimit: 30_000 });
