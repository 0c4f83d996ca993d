export { CallTool } from './calls/call-tool.handler.js';
export { startIsolation } from './cell/isolation.js';
export type { RunningIsolation } from './cell/isolation.js';
export { createSandbox } from './calls/sandbox.js';
export type { Sandbox, SandboxOptions } from './calls/sandbox.js';
export { SandboxModule } from './sandbox.module.js';
