import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { armFailpoints, failpoint } from '@antiphon/kernel';
import { failpointsFrom } from './failpoints.js';

describe('failpoints', () => {
  it('are inactive unless armed', async () => {
    expect(failpointsFrom(undefined)).toBeNull();
    expect(failpointsFrom('')).toBeNull();
    await expect(failpoint('agent.turn.reserved')).resolves.toBeUndefined();
  });

  it('act at the given pass only', async () => {
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

  it('of a file act once, and leave the plan as another process reads it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'antiphon-failpoints-'));
    const path = join(folder, 'plan');
    const plan = 'agent.turn.reserved:1:throw';
    writeFileSync(path, plan);
    const opened = openSync(path, 'r');
    armFailpoints(failpointsFrom(`@${path}`));
    try {
      await expect(failpoint('agent.turn.reserved')).rejects.toThrow('a failpoint threw');
      expect(JSON.parse(readFileSync(`${path}.hit`, 'utf8'))).toEqual({ plan, pid: process.pid });
      expect(readFileSync(opened, 'utf8')).toBe(plan);
      await failpoint('agent.turn.reserved');
    } finally {
      armFailpoints(null);
      rmSync(folder, { recursive: true });
    }
  });

  it('reject an unknown point or action', () => {
    expect(() => failpointsFrom('agent.turn.nowhere:1:throw')).toThrow('unknown point');
    expect(() => failpointsFrom('agent.turn.reserved:1:explode')).toThrow('unknown action explode');
  });
});
