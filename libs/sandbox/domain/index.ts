export { isPublicAddress, parseHttpRequest, textCharset, vetUrl } from './egress.js';
export type { RequestVerdict, UrlVerdict, VettedUrl } from './egress.js';
export type { RejectionCode } from './module-validator/byte-reader.js';
export {
  ABORT,
  EXTISM_FUNCTIONS,
  EXTISM_MODULE,
  HTTP_FUNCTIONS,
  MAX_MODULE_BYTES,
  MAX_TABLE_ENTRIES,
  validateModule,
} from './module-validator/validate-module.js';
export type { ModuleLimits, ModuleVerdict, PluginKind } from './module-validator/validate-module.js';
export { defaultDescription, parseDescription } from './plugin-description.js';
export type { DescriptionResult, PluginDescription } from './plugin-description.js';
export { TOOL_FAILURES, toToolOutcome, toolFailed } from './tool-outcome.js';
export type { RunEnd, ToolFailure, ToolOutcome } from './tool-outcome.js';
