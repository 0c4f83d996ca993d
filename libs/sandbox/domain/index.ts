export { ABORT, EXTISM_FUNCTIONS, EXTISM_MODULE } from './module-gate/extism-imports.js';
export type { GateCode } from './module-gate/byte-reader.js';
export { MAX_MODULE_BYTES, MAX_TABLE_ENTRIES, judgeModule } from './module-gate/judge-module.js';
export type { GateLimits, PluginKind, Verdict } from './module-gate/judge-module.js';
export { ungrantable } from './plugin/grants.js';
export { parseDescription, undescribed } from './plugin/plugin-description.js';
export type { DescriptionResult, PluginDescription } from './plugin/plugin-description.js';
export { TOOL_FAILURES, failed, outcomeOf } from './tool-result/tool-outcome.js';
export type { RunEnd, ToolFailure, ToolOutcome } from './tool-result/tool-outcome.js';
