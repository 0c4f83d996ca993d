import { describe, it, jest } from '@jest/globals';
import { keepPromises } from './promises.js';

jest.setTimeout(120_000);

describe('agents, metering and clients that die, stand still, repeat themselves and overtake each other, by wrong clocks', () => {
  it('keep every promise, in 500 simulations', () => keepPromises(500));
});
