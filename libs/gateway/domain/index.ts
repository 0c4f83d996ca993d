export { isDashboardPage } from './dashboard-path.js';
export { advance, judgeFrame, sequenceFrom } from './frame-sequence.js';
export type { FrameSequence, FrameVerdict } from './frame-sequence.js';
export { isLoopbackHost, judgeOrigin } from './origin-policy.js';
export type { OriginVerdict, RequestOrigin } from './origin-policy.js';
export { TYPES_BY_SEVERITY, severityOf } from './severity.js';
export type { Severity } from './severity.js';
