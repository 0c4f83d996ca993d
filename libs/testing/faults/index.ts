export { auditStack, auditUntilQuiet } from './audit-stack.js';
export { CHAOS_CONFIG, runChaos } from './chaos.js';
export type { ChaosOptions, ChaosReport } from './chaos.js';
export { readFacts } from './read-facts.js';
export { forgetNats, nextFault } from './stack-faults.js';
export type { Fault } from './stack-faults.js';
export { startEngineProxy } from './engine-proxy.js';
export type { EngineProxy } from './engine-proxy.js';
