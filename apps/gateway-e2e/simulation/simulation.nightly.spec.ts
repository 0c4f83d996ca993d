import { describe, it } from '@jest/globals';
import { keepPromises } from './promises.js';

const SIMULATIONS = Number(process.env['ANTIPHON_SIMULATIONS'] ?? 20_000);

describe('agents, metering and clients with crashes, pauses, repeats, races and wrong clocks', () => {
  it(`keep every promise in ${SIMULATIONS} simulations`, () => keepPromises(SIMULATIONS));
});
