import { describe, expect, it } from '@jest/globals';
import { armFailpoints, failpoint } from '@antiphon/kernel';
import { failpointsFrom } from './failpoints.js';

describe('failpoints', () => {
  it('do nothing when nobody asks for them', async () => {
    expect(failpointsFrom(undefined)).toBeNull();
    expect(failpointsFrom('')).toBeNull();
    await expect(failpoint('agent.turn.reserved')).resolves.toBeUndefined();
  });

  it('act at the pass that they name, and only at that one', async () => {
    const act = failpointsFrom('agent.turn.reserved:2:throw,agent.tool.answered:1:delay=0');
    armFailpoints(act);
    try {
      await failpoint('agent.turn.reserved');
      await failpoint('agent.turn.answered');
      await failpoint('agent.tool.answered');
      await expect(failpoint('agent.turn.reserved')).rejects.toThrow('a failpoint threw');
      await failpoint('agent.turn.reserved');
    } finally {
      armFailpoints(null);
    }
  });

  it('are refused when they name what is not there', () => {
    expect(() => failpointsFrom('agent.turn.nowhere:1:throw')).toThrow('there is no point');
    expect(() => failpointsFrom('agent.turn.reserved:1:explode')).toThrow('explode is no action');
  });
});
