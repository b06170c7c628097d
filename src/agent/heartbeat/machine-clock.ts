/** The one clock that all threads of a process share; it goes on while the process is stopped, and never goes back. */
export const machineMs = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;
