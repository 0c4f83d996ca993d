import { pino } from 'pino';
import type { Logger as PinoLogger } from 'pino';
import { countLostLine, DescriptorSink } from './log-sink.js';
import type { LogSink } from './log-sink.js';
import { currentContext } from './request-context.js';
import { redactValue } from './redact.js';
import { redactText } from './redact-text.js';
import { parseTraceparent } from './trace-context.js';

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * Takes fields, then the event name: `logger.info({ lease }, 'leadership acquired')`. Errors go
 * under `err`. Never throws: a line that cannot be written is lost and counted.
 */
export interface LogMethod {
  (fields: object, message: string): void;
  (message: string): void;
}

/** Writes one JSON line for each call, with the ids of the current request. */
export interface Logger {
  readonly trace: LogMethod;
  readonly debug: LogMethod;
  readonly info: LogMethod;
  readonly warn: LogMethod;
  readonly error: LogMethod;
  readonly fatal: LogMethod;
  /** Makes a logger that adds these fields to each line. */
  child(fields: Readonly<Record<string, unknown>>): Logger;
}

export interface LoggerOptions {
  readonly service: string;
  /** Default `info`. */
  readonly level?: LogLevel;
  /** Destination of the lines. Default: standard output. */
  readonly sink?: LogSink;
}

const contextFields = (): object => {
  const context = currentContext();
  if (!context) return {};
  const { correlationId, causationId, found, traceparent } = context;
  const trace = parseTraceparent(traceparent);
  return {
    correlationId,
    causationId,
    workspace: context.workspace ?? found?.workspace,
    sessionId: context.sessionId ?? found?.sessionId,
    turnId: context.turnId ?? found?.turnId,
    traceId: trace?.traceId,
    spanId: trace?.spanId,
  };
};

const redactFields = (fields: object): Record<string, unknown> =>
  redactValue(fields) as Record<string, unknown>;

// No hook of pino formats a child's fields; children inherit this method from their root.
const redactChildren = (root: PinoLogger): PinoLogger => {
  const original = root.child;
  root.child = function (this: PinoLogger, fields: object, options?: object) {
    try {
      return original.call(this, redactFields(fields), options);
    } catch {
      countLostLine('fields');
      return this;
    }
  } as typeof root.child;
  return root;
};

/**
 * Creates the logger of a process: JSON lines with time (ISO), level name, service, pid and
 * message.
 */
export const createLogger = ({ service, level = 'info', sink }: LoggerOptions): Logger => {
  const root = pino(
    {
      level,
      base: { service, pid: process.pid },
      messageKey: 'message',
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      mixin: contextFields,
      // Fields of the call override those of the context.
      mixinMergeStrategy: (fields, mixed) => ({ ...mixed, ...fields }),
      serializers: { err: (error: unknown) => error },
      formatters: {
        level: (label) => ({ level: label }),
        log: redactFields,
      },
      hooks: {
        logMethod(args, method) {
          try {
            const safe = args.map((arg: unknown) => (typeof arg === 'string' ? redactText(arg) : arg));
            method.apply(this, safe as typeof args);
          } catch {
            countLostLine('fields');
          }
        },
      },
    },
    sink ?? new DescriptorSink(1),
  );
  return redactChildren(root);
};

/** Logs nothing; for tests. */
export const silentLogger: Logger = createLogger({
  service: 'test',
  level: 'silent',
});
