/**
 * Log writes one JSON line per decision to stdout. No transports: a worker thread costs memory on every node.
 * Read `LogFields` first: the keys are fixed, so that a query written once works for every process.
 */
import { type DestinationStream, destination, type Logger, pino } from 'pino';

/** The keys a log line may carry. Add one here before you use it. */
export interface LogFields {
  /** Which part of the process speaks, e.g. `lease`. */
  readonly component?: string;
  readonly controller?: string;
  /** `namespace/name` of the object that was worked on. */
  readonly key?: string;
  readonly policy?: string;
  readonly gateway?: string;
  readonly node?: string;
  readonly eip?: string;
  /** A typed reason; the same word as in conditions, events and metrics. */
  readonly reason?: string;
  /** How long it took. */
  readonly ms?: number;
  readonly count?: number;
  readonly path?: string;
  readonly err?: unknown;
}

/** The levels from loud to quiet. `silent` writes nothing. */
export const logLevels = ['debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/** What components get. Fields first, then one short sentence in lower case. */
export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  fatal(fields: LogFields, message: string): void;
  /** Returns a log whose lines all carry these fields too. */
  child(fields: LogFields): Log;
}

/** The log of a process, whose level can change while it runs. */
export interface RootLog extends Log {
  /** Takes effect at once for this log and all its children. */
  setLevel(level: LogLevel): void;
}

const STDOUT = 1;

/** Returns the log of one process. `destination` is stdout when absent; writes are synchronous, so a crash loses none. */
export function createLog(options: {
  readonly process: string;
  readonly level: LogLevel;
  readonly destination?: DestinationStream;
}): RootLog {
  const settings = {
    level: 'debug',
    base: { process: options.process },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  // Without `sync`, pino writes in a thread of Node, and at the exit of the process later lines overtake the one on its way.
  const logger = pino(settings, options.destination ?? destination({ dest: STDOUT, sync: true }));
  const threshold = { level: options.level };
  return {
    ...filtered(logger, threshold),
    setLevel(level) {
      threshold.level = level;
    },
  };
}

/** pino copies the level into every child; one shared threshold lets a reloaded configuration reach all of them. */
function filtered(logger: Logger, threshold: { readonly level: LogLevel }): Log {
  const writer = (level: Exclude<LogLevel, 'silent'>) => (fields: LogFields, message: string) => {
    if (logLevels.indexOf(level) >= logLevels.indexOf(threshold.level)) logger[level](fields, message);
  };
  return {
    debug: writer('debug'),
    info: writer('info'),
    warn: writer('warn'),
    error: writer('error'),
    fatal: writer('fatal'),
    child: (fields) => filtered(logger.child(fields), threshold),
  };
}
