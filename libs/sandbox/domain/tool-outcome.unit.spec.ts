import { describe, expect, it } from '@jest/globals';
import { toToolOutcome } from '@antiphon/sandbox-domain';
import type { RunEnd } from '@antiphon/sandbox-domain';
import type { Cause } from '@antiphon/contracts/causes';

const MAX = 1_000;
const returned = (output: string | Uint8Array, status = 0, error: string | null = null): RunEnd => ({
  end: 'returned',
  status,
  output: typeof output === 'string' ? new TextEncoder().encode(output) : output,
  error,
});
const outcome = (run: RunEnd) => toToolOutcome(run, MAX);

describe('toToolOutcome', () => {
  it.each([
    ['a result object', '{"content":"42","is_error":false}', '42', false],
    ['a result object with is_error', '{"content":"no","is_error":true}', 'no', true],
    ['a result object without is_error', '{"content":"42"}', '42', false],
    ['plain text', 'forty-two', 'forty-two', false],
    ['JSON of another shape', '{"answer":42}', '{"answer":42}', false],
    ['text that only looks like JSON', '{not json', '{not json', false],
    ['nothing', '', '', false],
  ])('reads %s', (_, output, content, isError) =>
    expect(outcome(returned(output))).toEqual({ outcome: 'completed', content, isError }),
  );

  it('ignores all keys but content and is_error', () =>
    expect(
      outcome(
        returned('{"content":"x","is_error":"no","tool_use_id":"t","session":"s","cost":0,"durationMs":-1}'),
      ),
    ).toEqual({ outcome: 'completed', content: 'x', isError: false }));

  it('returns an error when the plug-in set one, despite its output', () =>
    expect(outcome(returned('{"content":"fine"}', 0, 'broken'))).toEqual({
      outcome: 'completed',
      content: 'broken',
      isError: true,
    }));

  it('returns an error when the status is not 0', () => {
    expect(outcome(returned('half', 1))).toMatchObject({ content: 'half', isError: true });
    expect(outcome(returned('', 7))).toMatchObject({
      content: 'the tool answered with status 7',
      isError: true,
    });
  });

  it('includes only a sample of bytes that are not text', () => {
    const failed = outcome(returned(Uint8Array.from([0xff, 0xfe, 0x00])));
    expect(failed).toMatchObject({ outcome: 'failed', code: 'TOOL.OUTPUT' });
    expect(failed).toMatchObject({ message: expect.stringContaining('invalid_output: 3 bytes') });
    expect(failed).toMatchObject({ message: expect.stringContaining('base64 //4A') });
    const long = outcome(returned(new Uint8Array(100_000).fill(0xff)));
    expect(long.outcome === 'failed' && long.message.length).toBeLessThan(500);
  });

  it('limits content by its size in UTF-8', () => {
    expect(outcome(returned('x'.repeat(MAX)))).toMatchObject({ outcome: 'completed' });
    expect(outcome(returned('x'.repeat(MAX + 1)))).toMatchObject({ outcome: 'failed', code: 'TOOL.OUTPUT' });
    expect(outcome(returned('ü'.repeat(MAX / 2 + 1)))).toMatchObject({
      outcome: 'failed',
      code: 'TOOL.OUTPUT',
    });
  });

  it('replaces characters that the log cannot store', () =>
    expect(outcome(returned('{"content":"a\\u0000b\\ud800"}'))).toMatchObject({ content: 'a\ufffdb\ufffd' }));

  it.each<[RunEnd, string, string, Cause]>([
    [
      { end: 'trapped', message: 'unreachable' },
      ...(['TOOL.TRAP', 'unreachable'] as const),
      { kind: 'tool_trapped', detail: 'unreachable' },
    ],
    [
      { end: 'memory', message: 'out of bounds' },
      ...(['TOOL.MEMORY', 'memory_limit'] as const),
      { kind: 'tool_memory_limit', detail: 'out of bounds' },
    ],
    [
      { end: 'output', message: 'too much' },
      ...(['TOOL.OUTPUT', 'output_limit'] as const),
      { kind: 'tool_output_limit', detail: 'too much' },
    ],
    [
      { end: 'timeout', timeoutMs: 50 },
      ...(['TOOL.TIMEOUT', 'within 50 ms'] as const),
      { kind: 'tool_timeout', timeoutMs: 50 },
    ],
    [{ end: 'cancelled' }, 'TOOL.CANCELLED', 'cancelled', { kind: 'tool_call_cancelled' }],
    [
      { end: 'died', message: 'signal SIGSEGV' },
      ...(['TOOL.TRAP', 'signal SIGSEGV'] as const),
      { kind: 'tool_process_ended', detail: 'signal SIGSEGV' },
    ],
  ])('converts %j to %s, with its cause', (run, code, text, cause) =>
    expect(outcome(run)).toEqual({
      ...{ outcome: 'failed', code, cause },
      message: expect.stringContaining(text),
    }),
  );
});
