import { expect, it } from '@jest/globals';
import { natsThreads } from './nats.js';

it.each([
  [1, 1],
  [2, 1],
  [3, 1],
  [8, 4],
])('NATS on a machine with %d cores runs %d threads', (cores, threads) => {
  expect(natsThreads(cores)).toBe(threads);
});
