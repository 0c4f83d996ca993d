import { describe, expect, it } from '@jest/globals';
import type { ToolLimit } from '@antiphon/config';
import { callPolicy } from './tool-catalog.js';

const NONE = { timeoutMs: null, maxAttempts: null, maxBackoffMs: null };
const limited = (...toolLimits: (Partial<ToolLimit> & { tool: string })[]) => ({
  toolLimits: toolLimits.map((limit) => ({ ...NONE, ...limit })),
});
const retry = { maxAttempts: 5, backoffMs: 200, maxBackoffMs: 10_000, onTimeout: true };
const declared = { idempotent: true, retry, timeoutMs: 2_000 };

describe('callPolicy', () => {
  it("returns the tool's own policy without agent limits", () => {
    expect(callPolicy(limited(), 'weather', declared)).toEqual({ retry });
    expect(callPolicy(null, 'weather', { idempotent: false })).toEqual({});
  });

  it("narrows the policy to the agent's limits", () => {
    const agent = limited({ tool: 'weather', timeoutMs: 500, maxAttempts: 2, maxBackoffMs: 100 });
    expect(callPolicy(agent, 'weather', declared)).toEqual({
      retry: { maxAttempts: 2, backoffMs: 100, maxBackoffMs: 100, onTimeout: true },
      timeoutMs: 500,
    });
    expect(callPolicy(agent, 'other', declared)).toEqual({ retry });
  });

  it('never widens the policy', () => {
    const agent = limited({ tool: '*', timeoutMs: 60_000, maxAttempts: 10, maxBackoffMs: 600_000 });
    expect(callPolicy(agent, 'weather', declared)).toEqual({ retry });
  });

  it('prefers the limit of the tool to that for all tools', () => {
    const agent = limited({ tool: '*', maxAttempts: 1 }, { tool: 'weather', maxAttempts: 3 });
    expect(callPolicy(agent, 'weather', declared).retry?.maxAttempts).toBe(3);
    expect(callPolicy(agent, 'other', declared).retry?.maxAttempts).toBe(1);
  });

  it('limits an idempotent tool without a policy, and leaves any other with one attempt', () => {
    const agent = limited({ tool: '*', maxAttempts: 1 });
    expect(callPolicy(agent, 'x', { idempotent: true })).toEqual({
      retry: { maxAttempts: 1, backoffMs: 500, maxBackoffMs: 30_000, onTimeout: false },
    });
    expect(callPolicy(agent, 'x', { idempotent: false })).toEqual({});
  });
});
