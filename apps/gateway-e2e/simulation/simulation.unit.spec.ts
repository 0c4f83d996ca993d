import { describe, it, jest } from '@jest/globals';
import { checkSimulations } from './simulate.js';

jest.setTimeout(120_000);

describe('agents, metering and clients with crashes, pauses, repeats, races and wrong clocks', () => {
  it('break no invariant in 500 simulations', () => checkSimulations(500));
});
