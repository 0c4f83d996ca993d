import { describe, it } from '@jest/globals';
import { checkRandomHistory } from './rewind-histories.spec.js';

describe('a rewind of files', () => {
  // @shows chats-C10
  it('equals the model in 1,000 random histories of three sessions', () => {
    for (let seed = 1; seed <= 1_000; seed++) checkRandomHistory(seed);
  });
});
