export { raiseWall } from './cell/raise-wall.js';
export type { RaisedWall } from './cell/raise-wall.js';
export { createSandbox } from './sandbox.js';
export type { Sandbox, SandboxOptions } from './sandbox.js';
export { SandboxModule } from './sandbox.module.js';
