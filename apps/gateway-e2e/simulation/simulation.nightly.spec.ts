import { describe, it } from '@jest/globals';
import { checkSimulations } from './simulate.js';

const SIMULATIONS = Number(process.env['ANTIPHON_SIMULATIONS'] ?? 20_000);

describe('agents, metering and clients with crashes, pauses, repeats, races and wrong clocks', () => {
  it(`break no invariant in ${SIMULATIONS} simulations`, () => checkSimulations(SIMULATIONS));
});
