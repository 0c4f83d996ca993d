import { describe, expect, it } from '@jest/globals';
import { failpointsFrom } from './failpoint.js';

describe('failpoints', () => {
  it('do nothing unless the environment says so', async () =>
    expect(await failpointsFrom(undefined)('agent.turn.reserved', 's')).toBeUndefined());

  it('act at the nth passing of their point, and at no other', async () => {
    const failpoint = failpointsFrom('agent.turn.reserved:2:throw,agent.tool.answered:1:delay=0');
    await failpoint('agent.turn.reserved', 's');
    await failpoint('agent.turn.answered', 's');
    await failpoint('agent.tool.answered', 's');
    await expect(failpoint('agent.turn.reserved', 's')).rejects.toThrow('a failpoint threw');
    await failpoint('agent.turn.reserved', 's');
  });

  it('are refused when they name what is not there', () => {
    expect(() => failpointsFrom('agent.turn.nowhere:1:throw')).toThrow('is no point of the agent');
    expect(() => failpointsFrom('agent.turn.reserved:1:explode')).toThrow('explode is no action');
  });
});
