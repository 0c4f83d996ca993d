export { auditLive, withLive } from './live/audit-live.js';
export type { LiveAuditOptions } from './live/audit-live.js';
