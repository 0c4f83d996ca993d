export { createSandbox } from './sandbox.js';
export type { Sandbox, SandboxOptions } from './sandbox.js';
export { SandboxModule } from './sandbox.module.js';
