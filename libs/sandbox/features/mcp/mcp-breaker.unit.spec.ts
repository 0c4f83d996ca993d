import { describe, expect, it } from '@jest/globals';
import { BREAKER_FAILURES, BREAKER_OPEN_MS } from '@antiphon/kernel';
import { McpBreaker } from './mcp-breaker.js';

describe('the circuit breaker of an MCP server', () => {
  const opened = () => {
    const clock = { now: 1_000 };
    const breaker = new McpBreaker(() => clock.now);
    for (let n = 1; n < BREAKER_FAILURES; n++) expect(breaker.recordFailure()).toBe(false);
    expect(breaker.admit().isAdmitted).toBe(true);
    expect(breaker.recordFailure()).toBe(true);
    return { clock, breaker };
  };

  it('refuses calls after failures in a row, and admits one trial after a minute', () => {
    const { clock, breaker } = opened();
    expect(breaker.admit()).toEqual({ isAdmitted: false, until: 1_000 + BREAKER_OPEN_MS });
    clock.now += BREAKER_OPEN_MS;
    expect(breaker.admit().isAdmitted).toBe(true);
    expect(breaker.admit().isAdmitted).toBe(false);
    breaker.releaseTrial();
    expect(breaker.admit().isAdmitted).toBe(true);
    expect(breaker.recordFailure()).toBe(false);
    expect(breaker.admit().isAdmitted).toBe(false);
  });

  it('closes after a success', () => {
    const { clock, breaker } = opened();
    clock.now += BREAKER_OPEN_MS;
    breaker.admit();
    breaker.recordSuccess();
    expect(breaker.openUntil).toBeNull();
    expect(breaker.admit().isAdmitted).toBe(true);
  });
});
