import { describe, expect, it } from '@jest/globals';
import { createSessionFence } from './session-fence.js';

describe('the session fence', () => {
  it('lets equal and higher epochs pass, and refuses lower ones', () => {
    const fence = createSessionFence();
    fence.check('w', 's', 3);
    fence.check('w', 's', 3);
    fence.check('w', 's', 5);
    expect(() => fence.check('w', 's', 4)).toThrow(
      expect.objectContaining({ kind: 'conflict', code: 'SANDBOX.FENCED', data: { epoch: 4, actual: 5 } }),
    );
  });

  it('keeps sessions and workspaces apart', () => {
    const fence = createSessionFence();
    fence.check('w', 's', 5);
    fence.check('w', 't', 1);
    fence.check('v', 's', 1);
  });

  it('forgets the session that has been quiet longest', () => {
    const fence = createSessionFence(2);
    fence.check('w', 'a', 5);
    fence.check('w', 'b', 5);
    fence.check('w', 'a', 5);
    fence.check('w', 'c', 5);
    expect(() => fence.check('w', 'a', 4)).toThrow();
    fence.check('w', 'b', 1);
  });
});
