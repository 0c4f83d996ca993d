import { describe, expect, it } from '@jest/globals';
import { SessionFence } from './call-registry.js';

describe('SessionFence', () => {
  it('accepts equal and higher epochs and refuses lower ones', () => {
    const fence = new SessionFence();
    fence.check('w', 's', 3);
    fence.check('w', 's', 3);
    fence.check('w', 's', 5);
    expect(() => fence.check('w', 's', 4)).toThrow(
      expect.objectContaining({ kind: 'conflict', code: 'SANDBOX.FENCED', data: { epoch: 4, actual: 5 } }),
    );
  });

  it('checks each session of each workspace separately', () => {
    const fence = new SessionFence();
    fence.check('w', 's', 5);
    fence.check('w', 't', 1);
    fence.check('v', 's', 1);
  });

  it('evicts the least recently checked session', () => {
    const fence = new SessionFence(2);
    fence.check('w', 'a', 5);
    fence.check('w', 'b', 5);
    fence.check('w', 'a', 5);
    fence.check('w', 'c', 5);
    expect(() => fence.check('w', 'a', 4)).toThrow();
    fence.check('w', 'b', 1);
  });
});
