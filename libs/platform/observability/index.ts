export { surviveOutputErrors } from './log-sink.js';
export { LOG_LEVELS, createLogger, silentLogger } from './logger.js';
export type { LogLevel, LogMethod, Logger, LoggerOptions } from './logger.js';
export {
  METRICS_MEDIA_TYPE,
  SECONDS,
  countError,
  countFailure,
  defineCounter,
  defineHistogram,
  errorTypeOf,
  observeGauges,
  renderMetrics,
} from './metrics.js';
export type { CounterMetric, ErrorPlace, Gauges, HistogramMetric, Labels } from './metrics.js';
export { isSecretKey, redactValue } from './redact.js';
export { REDACTED, createRedactor, needlesOf, redactNeedles, redactText } from './redact-text.js';
export type { Redact } from './redact-text.js';
export {
  addFoundIds,
  keepContext,
  contextFrom,
  currentContext,
  runInTrace,
  runWithContext,
  runWithContextFields,
  traceHeadersOf,
} from './request-context.js';
export type { FoundIds, IncomingContext, RequestContext, TraceHeaders } from './request-context.js';
export { SPAN_ATTRIBUTES } from './span-attributes.js';
export type { SpanAttribute, SpanAttributes } from './span-attributes.js';
export { namedTraceparent, openSpan, recordSpan, withSpan } from './span.js';
export type { EndedSpan, OpenSpan, SpanRole, SpanStart } from './span.js';
export { systemClock, uuidIds } from './system-ports.js';
export { startTelemetry } from './telemetry.js';
export type { Telemetry, TelemetryOptions } from './telemetry.js';
export {
  childTraceparent,
  formatTraceparent,
  newTraceparent,
  parseTraceparent,
  spanIdOf,
  timeOfUuid,
} from './trace-context.js';
export type { TraceContext } from './trace-context.js';
export { TURN_STAGES, recordTurnStage } from './turn-stages.js';
export type { TurnStage } from './turn-stages.js';
