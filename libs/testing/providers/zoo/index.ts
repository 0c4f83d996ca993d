export { BEHAVIOURS } from './behaviours.js';
export type { Behaviour, ZooOutcome, ZooResponse } from './behaviours.js';
export { PROBLEMS } from './reply.js';
export type { ZooReply, ZooServer } from './reply.js';
export { startZoo } from './serve.js';
export { ZOO } from './servers.js';
