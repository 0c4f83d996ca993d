export { startEngineProxy } from './engine-proxy.js';
export type { EngineProxy } from './engine-proxy.js';
export { createFaultyLink, natsName, postgresName } from './faulty-link.js';
export type { Delay, FaultyLink, FaultyLinkOptions } from './faulty-link.js';
