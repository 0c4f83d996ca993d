import { describe, it } from '@jest/globals';
import { keepPromises } from './promises.js';

describe('agents, metering and clients that die, stand still, repeat themselves and overtake each other, by wrong clocks', () => {
  it('keep every promise, in 20,000 simulations', () => keepPromises(20_000));
});
