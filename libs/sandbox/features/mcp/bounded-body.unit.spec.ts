import { describe, expect, it } from '@jest/globals';
import { boundBody } from './bounded-body.js';
import { MAX_MESSAGE_BYTES, McpFlood, ReadingBudget } from './mcp-flood.js';

const bodyOf = (chunks: readonly (string | Uint8Array)[]) =>
  ReadableStream.from(
    chunks.map((chunk) => (typeof chunk === 'string' ? Buffer.from(chunk) : chunk)),
  ) as Parameters<typeof boundBody>[0];

describe('the body of a response of an MCP server', () => {
  it('is passed on, and counts against all servers until it ends', async () => {
    const budget = new ReadingBudget(10);
    const reader = boundBody(bodyOf(['12345', '678']), false, budget).getReader();
    expect(Buffer.from((await reader.read()).value ?? [])).toEqual(Buffer.from('12345'));
    expect(budget.usedBytes).toBeGreaterThanOrEqual(5);
    const other = boundBody(bodyOf(['abcdef']), false, budget).getReader();
    await expect(other.read()).rejects.toBeInstanceOf(McpFlood);
    await reader.read();
    expect(await reader.read()).toMatchObject({ done: true });
    expect(budget.usedBytes).toBe(0);
  });

  it('counts the last event of a stream alone, also where a chunk divides its end', async () => {
    const budget = new ReadingBudget(10);
    const events = ['data: 1\n', '\ndata: 2\n\ndata', ': 3\n\n', 'data: 4\n\n'];
    const reader = boundBody(bodyOf(events), true, budget).getReader();
    let text = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      text += Buffer.from(value).toString();
    }
    expect(text).toBe(events.join(''));
    expect(budget.usedBytes).toBe(0);
  });

  it('gives its bytes back when it is cancelled, and when it is too large', async () => {
    const budget = new ReadingBudget();
    const left = boundBody(bodyOf(['12345', '678']), false, budget).getReader();
    await left.read();
    await left.cancel();
    expect(budget.usedBytes).toBe(0);
    const half = new Uint8Array(MAX_MESSAGE_BYTES / 2 + 1);
    const large = boundBody(bodyOf([half, half]), false, budget).getReader();
    await large.read();
    await expect(large.read()).rejects.toThrow(/over 83886080 bytes/);
    expect(budget.usedBytes).toBe(0);
  });
});
