import { memoryFacts } from './projections/apply-session-events.js';
import { logRates } from './rates/log-rates.projection.js';

/** Projections that the memory service runs. */
export const memoryProjections = [memoryFacts, logRates] as const;
