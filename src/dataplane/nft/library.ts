/**
 * nft without starting a program: the library that the program is made of, in this process, with one netlink socket that
 * stays open. A small change then takes 0.2 ms instead of 14 (2026-11): most of the 14 are not work but the kernel, which
 * makes whoever closes such a socket wait until all that was deleted is freed.
 *
 * It is used for changes of elements only, and its failures are never told: what it does not take goes to the program,
 * which says why in words that refusal.ts reads, and which can be killed.
 */
import { loadLibc, SOCK_CLOEXEC, SOCK_RAW } from '../libc.ts';
import { AF_NETLINK, NETLINK_NETFILTER } from '../netfilter-socket.ts';
import type { Programs } from '../program.ts';

/** The library, ready to use. */
export interface NftLibrary {
  /** Runs a script as one transaction, before it returns. False: nothing was changed. */
  run(script: string): boolean;
  /** Closes the socket. May be called twice. */
  close(): void;
}

/** Programs of which `nft -f -` is done by the library where it can be. */
export const withNftLibrary = (programs: Programs, library: NftLibrary | undefined): Programs => {
  if (library === undefined) return programs;
  return {
    ...programs,
    run: async (argv, options) => {
      const isScript = argv.join(' ') === 'nft -f -';
      const isDone = isScript && isSmallChange(options?.input ?? '') && library.run(options?.input ?? '');
      return isDone ? { code: 0, stdout: '', stderr: '' } : programs.run(argv, options);
    },
  };
};

/** About two thousand elements. The memory that a script takes stays with the process, so large ones go to a program. */
const LONGEST = 64 * 1024;

const isSmallChange = (script: string): boolean =>
  script.length <= LONGEST && /^(?:(?:add|delete) element [^\n]*\n)+$/.test(script);

/** Opens the library in the network namespace of the caller; undefined where the kernel has no such sockets. */
export type OpenNftLibrary = () => NftLibrary | undefined;

/** Loads the library of the machine. Where there is none, it cannot be opened either. */
export const loadNftLibrary = async (): Promise<OpenNftLibrary> => {
  // Imported here and not above, so that the other commands of the program start without the addon.
  const { default: koffi } = await import('koffi');
  const found = await Promise.try(() => koffi.load('libnftables.so.1')).catch(() => undefined);
  if (found === undefined) return () => undefined;
  const libc = await loadLibc();
  const open = found.func('void *nft_ctx_new(uint32_t flags)');
  const free = found.func('void nft_ctx_free(void *context)');
  const keepOutput = found.func('int nft_ctx_buffer_output(void *context)');
  const keepErrors = found.func('int nft_ctx_buffer_error(void *context)');
  const run = found.func('int nft_run_cmd_from_buffer(void *context, const char *script)');
  const onlyCheck = found.func('void nft_ctx_set_dry_run(void *context, bool isOn)');
  // What the library has read of the kernel for a script is of no use to the next one, but it would keep it: half a megabyte
  // for each table of the node. It lets go of it after scripts that change nothing.
  const forget = (context: unknown): void => {
    onlyCheck(context, true);
    run(context, '');
    onlyCheck(context, false);
  };

  return () => {
    // The library ends the process when it cannot have a socket, so it is tried before.
    const descriptor = libc.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
    if (descriptor < 0) return undefined;
    libc.close(descriptor);
    const opened: unknown = open(0);
    // Else it would print to the standard output and error of this process.
    keepOutput(opened);
    keepErrors(opened);
    let context: unknown = opened;
    return {
      // Not in a thread of its own: to be woken up again takes longer on a busy machine than the whole change.
      run: (script) => {
        if (context === undefined) return false;
        const isDone = run(context, script) === 0;
        forget(context);
        return isDone;
      },
      close: () => {
        if (context !== undefined) free(context);
        context = undefined;
      },
    };
  };
};
