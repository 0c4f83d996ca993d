export { asOfReply, asOfRequest } from './as-of.js';
export { decodeCursor, encodeCursor, epochOfCursor } from './cursor.js';
export {
  AfterDeadLetter,
  ArchiveView,
  DeadLetterView,
  LogArchives,
  LogRootView,
  LogRoots,
  PROJECTION_SERVICES,
  REPORT_KINDS,
  ParkedStreamView,
  ProjectionView,
  ReplayOutcome,
  RestoreView,
  listDeadLetters,
  listLogArchives,
  listLogProjections,
  listParkedStreams,
  listRestores,
  readLogRoots,
  replayDeadLetter,
  replayParkedContract,
  verifyReport,
} from './log-requests.js';
export type { ProjectionService, ReportKind } from './log-requests.js';
export { LogRates, RATE_SPANS, RateBucket, RateSpan, readLogRates } from './rate-requests.js';
export { createUpcast } from './upcast.js';
export type { StoredForm, Upcast, Upcaster } from './upcast.js';
export {
  CATEGORIES,
  CATEGORY_OWNERS,
  DEFAULT_WORKSPACE,
  EventMetadata,
  ExportFormat,
  LOG_NOTIFICATION_SUBJECT,
  LOG_ROOT_SUBJECT,
  SessionExport,
  SessionExportHeader,
  StoredEvent,
  WorkspaceId,
  event,
  eventSubject,
} from './stored-event.js';
export type { Category } from './stored-event.js';
