export { createFaultyLink, natsName, postgresName } from './faulty-link.js';
export type { Delay, FaultyLink, FaultyLinkOptions } from './faulty-link.js';
