export { down } from './down.js';
export type { DownOptions } from './down.js';
export { renderTable } from './render-table.js';
export { readStack } from './stack-json.js';
export type { EngineEntry, ProcessState, ServiceEntry, StackJson } from './stack-json.js';
export { parseArguments, parseScale } from './stack-options.js';
export type { Scale, StackArguments } from './stack-options.js';
export { up } from './up.js';
export type { RunningStack, UpOptions } from './up.js';
