export { LOG_LEVELS, createLogger, silentLogger } from './logger.js';
export type { LogLevel, LogMethod, Logger, LoggerOptions } from './logger.js';
export { REDACTED, isSecretKey, redactText, redactValue } from './redact.js';
export { contextFrom, currentContext, runWithContext, runWithMore } from './request-context.js';
export type { IncomingContext, RequestContext } from './request-context.js';
export { systemClock, uuidIds } from './system-ports.js';
export { childTraceparent, formatTraceparent, newTraceparent, parseTraceparent } from './trace-context.js';
export type { TraceContext } from './trace-context.js';
