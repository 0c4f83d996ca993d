export type { AuditReport, CheckReport, Violation } from './audit-report.js';
export { runAudit } from './run-audit.js';
export type { AuditOptions, ProjectionAudit } from './run-audit.js';
