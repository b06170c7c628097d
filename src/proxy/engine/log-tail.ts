/**
 * LogTail hands over the lines of a log that an engine writes. A file and not a pipe, because whoever writes to a pipe wakes its reader each
 * time: a few lines at a time, thousands of times a second. The log stays small: when it has grown, it is renamed
 * and the writer is asked to open a new one; the old one is read on until all writers must have left it.
 */
import { type FileHandle, open, rename, stat, unlink } from 'node:fs/promises';
import { type Clock, wait } from '../../runtime/process/clock.ts';

export interface LogTailDeps {
  readonly file: string;
  readonly clock: Clock;
  /** Gets whole lines, as many as there are at once; the bytes are its own. */
  readonly onLines: (lines: Buffer) => void;
  /** Asks the writer to open its log by name again. It is asked once more when it has not done so after a while. */
  readonly reopen: () => void;
  /** Size at which the log is renamed (default 16 MiB). */
  readonly maxBytes?: number;
}

/** How often a log that is followed is looked at. */
const EVERY_MS = 500;
/** How long writers may hold the old log; nginx's workers leave it as soon as they read the message of their master. */
const LEAVE_MS = 5000;
const CHUNK_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

interface LogFile {
  readonly handle: FileHandle;
  position: number;
  /** The beginning of a line whose end is not there yet. */
  rest: Buffer;
  /** When it is given up; undefined for the log that is written now. */
  endsAtMs: number | undefined;
}

export class LogTail {
  readonly #deps: LogTailDeps;
  #parts: LogFile[] = [];
  #reading: Promise<void> = Promise.resolve();

  constructor(deps: LogTailDeps) {
    this.#deps = deps;
  }

  /** Hands over lines as they come, until the signal is aborted; then the rest. */
  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await wait(this.#deps.clock, EVERY_MS, signal);
      await this.read();
    }
    await this.close();
  }

  /** Hands over everything that is in the log now. Calls wait for each other, so no line comes twice. */
  read(): Promise<void> {
    return this.#inTurn(() => this.#read());
  }

  /** Reads the rest and lets go of the files. */
  close(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#read();
      await this.#letGo();
    });
  }

  /** The writer has ended: reads the rest and removes the log, so that half a line is nobody's beginning. */
  restart(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#read();
      await this.#letGo();
      for (const file of [this.#deps.file, oldOf(this.#deps.file)]) await unlink(file).catch(ignoreMissing);
    });
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#reading.then(work);
    this.#reading = done.catch(() => {});
    return done;
  }

  async #letGo(): Promise<void> {
    for (const { handle } of this.#parts) await handle.close();
    this.#parts = [];
  }

  async #read(): Promise<void> {
    const { file, clock, maxBytes = 16 * 1024 * 1024 } = this.#deps;
    if (this.#parts.every(({ endsAtMs }) => endsAtMs !== undefined)) await this.#open();
    for (const part of this.#parts) await this.#drain(part);
    const current = this.#parts.find(({ endsAtMs }) => endsAtMs === undefined);
    if (current !== undefined && current.position > maxBytes) {
      await rename(file, oldOf(file));
      current.endsAtMs = clock.monotonicMs() + LEAVE_MS;
      this.#deps.reopen();
    }
    for (const part of this.#parts.filter(({ endsAtMs }) => (endsAtMs ?? Infinity) <= clock.monotonicMs())) {
      if (part === this.#parts.at(-1)) {
        // There is no newer log: who was asked to open one did not hear it, and goes on writing here.
        part.endsAtMs = clock.monotonicMs() + LEAVE_MS;
        this.#deps.reopen();
        continue;
      }
      await part.handle.close();
      await unlink(oldOf(file)).catch(ignoreMissing);
      this.#parts = this.#parts.filter((other) => other !== part);
    }
  }

  async #open(): Promise<void> {
    const exists = await stat(this.#deps.file).then(() => true, ignoreMissing);
    if (exists !== true) return;
    this.#parts.push({
      handle: await open(this.#deps.file, 'r'),
      position: 0,
      rest: Buffer.alloc(0),
      endsAtMs: undefined,
    });
  }

  async #drain(part: LogFile): Promise<void> {
    for (;;) {
      const kept = part.rest.length;
      const buffer = Buffer.allocUnsafe(kept + CHUNK_BYTES);
      part.rest.copy(buffer);
      const { bytesRead } = await part.handle.read(buffer, kept, CHUNK_BYTES, part.position);
      if (bytesRead === 0) return;
      part.position += bytesRead;
      const end = buffer.lastIndexOf(NEWLINE, kept + bytesRead - 1) + 1;
      part.rest = Buffer.from(buffer.subarray(end, kept + bytesRead));
      if (end > 0) this.#deps.onLines(buffer.subarray(0, end));
    }
  }
}

const oldOf = (file: string): string => `${file}.old`;

const ignoreMissing = (error: unknown): void => {
  if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
};
