export { parseCheckpoint } from './audit-checkpoint.js';
export type { AuditCheckpoint, SignedAuditCheckpoint } from './audit-checkpoint.js';
export type { AuditReport, CheckReport, SigningReport, Violation } from './audit-report.js';
export type { TrustedRoots } from './signed-roots.js';
export { proveEvent } from './prove-event.js';
export { verifyRestoredLog } from './verify-restored-log.js';
export { auditLog, runAudit } from './run-audit.js';
export type { AuditOptions, AuditResult, ProjectionAudit } from './run-audit.js';
