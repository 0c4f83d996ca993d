import { describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import { HeldResults, holdLarge } from './held-results.js';

const CALL = { workspace: 'acme', callId: '0192f0c1-7a2b-7c3d-8e4f-000000000001' };
const KEY = `acme/${CALL.callId}`;
const returns = (content: string) => ({ outcome: 'completed' as const, content, isError: false });

describe('Held results', () => {
  it('hold a result of over 768 KiB for its caller, and leave a smaller one in the reply', () => {
    const held = new HeldResults(() => 0);
    const text = `head${'x'.repeat(1_000_000)}tail`;
    expect(holdLarge(held, CALL, returns('small'))).toEqual({ outcome: returns('small') });
    const { outcome, large } = holdLarge(held, CALL, returns(text));
    expect(large).toEqual({ digest: createHash('sha256').update(text).digest('hex'), size: 1_000_008 });
    expect(outcome).toMatchObject({ outcome: 'completed', isError: false });
    const content = outcome.outcome === 'completed' ? outcome.content : '';
    expect(content.length).toBeLessThanOrEqual(32 * 1024);
    expect(content).toMatch(/^head.*left out of 1000008 bytes.*tail$/s);
    expect(held.read(KEY, 1_000_004, 10)?.toString()).toBe('tail');
    expect(held.read(KEY, 1_000_008, 10)).toHaveLength(0);
  });

  it('hold a result that is large in JSON only', () => {
    const held = new HeldResults(() => 0);
    expect(holdLarge(held, CALL, returns('\u0001'.repeat(200_000))).large?.size).toBe(200_000);
  });

  it('refuse a result of over 64 MiB, and one for which others leave no room', () => {
    const held = new HeldResults(() => 0, 1_500_000);
    const text = 'x'.repeat(1_000_000);
    expect(holdLarge(held, CALL, returns(text)).large).toBeDefined();
    const other = { ...CALL, callId: 'other' };
    expect(holdLarge(held, other, returns(text)).outcome).toMatchObject({ code: 'TOOL.OUTPUT' });
    // The same call again takes the place of its first result.
    expect(holdLarge(held, CALL, returns(text)).large).toBeDefined();
    held.release(KEY);
    expect(held.read(KEY, 0, 1)).toBeNull();
    expect(holdLarge(held, other, returns(text)).large).toBeDefined();
    const huge = 'x'.repeat(64 * 1024 * 1024 + 1);
    expect(holdLarge(new HeldResults(() => 0), CALL, returns(huge)).outcome).toMatchObject({
      code: 'TOOL.OUTPUT',
    });
  });

  it('forget a result that waited for a minute, when the next one comes', () => {
    let now = 0;
    const held = new HeldResults(() => now, 10);
    expect(held.hold('a', Buffer.alloc(10))).toBe(true);
    expect(held.hold('b', Buffer.alloc(10))).toBe(false);
    now = 60_000;
    expect(held.hold('b', Buffer.alloc(10))).toBe(true);
    expect(held.read('a', 0, 1)).toBeNull();
  });
});
