import { describe, expect, it } from '@jest/globals';
import { parseToolPolicy } from '@antiphon/contracts/sandbox';
import { parseDescription, defaultDescription } from '@antiphon/sandbox-domain';

const describing = (value: unknown) =>
  parseDescription(new TextEncoder().encode(JSON.stringify(value)), parseToolPolicy);

describe('parseDescription', () => {
  it('reads description, schema and idempotent', () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } };
    expect(describing({ description: 'Adds.', input_schema: schema, idempotent: true })).toEqual({
      ok: true,
      description: { description: 'Adds.', inputSchema: schema, idempotent: true, declares: {} },
    });
  });

  it('treats a tool as not idempotent by default', () =>
    expect(describing({ description: 'Sends.' })).toMatchObject({
      description: { inputSchema: { type: 'object' }, idempotent: false },
    }));

  it('treats a tool without describe() as not idempotent', () =>
    expect(defaultDescription('x').idempotent).toBe(false));

  it('replaces characters that the log cannot store', () =>
    expect(describing({ description: 'a\0b' })).toMatchObject({ description: { description: 'a\ufffdb' } }));

  it.each([
    ['no JSON', new TextEncoder().encode('hello'), 'JSON object'],
    ['a list', new TextEncoder().encode('[]'), 'JSON object'],
    ['no description', new TextEncoder().encode('{}'), '"description"'],
    [
      'a schema of a string',
      new TextEncoder().encode('{"description":"x","input_schema":{"type":"string"}}'),
      'input_schema',
    ],
    [
      'a schema that is a list',
      new TextEncoder().encode('{"description":"x","input_schema":[]}'),
      'input_schema',
    ],
    [
      'idempotent as a string',
      new TextEncoder().encode('{"description":"x","idempotent":"yes"}'),
      'idempotent',
    ],
    ['100,000 levels', new TextEncoder().encode(`{"description":${'['.repeat(60_000)}`), 'nests deeper'],
    ['a flood', new Uint8Array(70_000), 'at most'],
    ['bytes that are not text', Uint8Array.from([0xff, 0xfe, 0]), 'JSON object'],
  ])('refuses %s', (_, output, reason) => {
    const result = parseDescription(output, parseToolPolicy);
    expect(result).toMatchObject({ ok: false });
    expect(!result.ok && result.reason).toContain(reason);
  });
});

describe('the policy in describe()', () => {
  const declaring = (policy: object) => describing({ description: 'x', idempotent: true, ...policy });
  const declared = (policy: object) => {
    const result = declaring(policy);
    return result.ok ? result.description.declares : result.reason;
  };

  it('accepts a timeout, retries, or both', () => {
    expect(declared({ timeout_ms: 2_000 })).toEqual({ timeoutMs: 2_000 });
    const retry = { max_attempts: 5, backoff_ms: 200, max_backoff_ms: 5_000, on_timeout: true };
    expect(declared({ retry, timeout_ms: 10 })).toEqual({
      timeoutMs: 10,
      retry: { maxAttempts: 5, backoffMs: 200, maxBackoffMs: 5_000, onTimeout: true },
    });
  });

  it('requires max_attempts only and raises the longest backoff to the first', () => {
    expect(declared({ retry: { max_attempts: 2 } })).toEqual({
      retry: { maxAttempts: 2, backoffMs: 500, maxBackoffMs: 30_000, onTimeout: false },
    });
    expect(declared({ retry: { max_attempts: 2, backoff_ms: 60_000 } })).toMatchObject({
      retry: { backoffMs: 60_000, maxBackoffMs: 60_000 },
    });
  });

  it.each([
    ['more attempts than the maximum', { retry: { max_attempts: 11 } }, '"retry.max_attempts"'],
    ['no attempt', { retry: { max_attempts: 0 } }, '"retry.max_attempts"'],
    ['half an attempt', { retry: { max_attempts: 1.5 } }, '"retry.max_attempts"'],
    ['attempts as a string', { retry: { max_attempts: '3' } }, '"retry.max_attempts"'],
    ['no number of attempts', { retry: {} }, '"retry.max_attempts"'],
    ['no wait', { retry: { max_attempts: 2, backoff_ms: 0 } }, '"retry.backoff_ms"'],
    ['a wait of a day', { retry: { max_attempts: 2, max_backoff_ms: 86_400_000 } }, '"retry.max_backoff_ms"'],
    [
      'waits that shrink',
      { retry: { max_attempts: 2, backoff_ms: 500, max_backoff_ms: 100 } },
      'first backoff',
    ],
    ['an unknown key', { retry: { max_attempts: 2, jitter: true } }, 'jitter'],
    ['a list', { retry: [] }, '"retry"'],
    ['null', { retry: null }, '"retry"'],
    ['no time', { timeout_ms: 0 }, '"timeout_ms"'],
    ['an hour', { timeout_ms: 3_600_000 }, '"timeout_ms"'],
    ['a negative time', { timeout_ms: -1 }, '"timeout_ms"'],
    ['time as a string', { timeout_ms: '5s' }, '"timeout_ms"'],
  ])('refuses %s', (_, policy, reason) => {
    expect(declaring(policy)).toMatchObject({ ok: false, reason: expect.stringContaining(reason) });
  });

  it('refuses retries of a tool that is not idempotent', () => {
    const unsafe = (retry: object) => describing({ description: 'x', retry });
    expect(unsafe({ max_attempts: 2 })).toMatchObject({
      reason: expect.stringContaining('"idempotent": true'),
    });
    expect(unsafe({ max_attempts: 1, on_timeout: true })).toMatchObject({ ok: false });
    expect(unsafe({ max_attempts: 1 })).toMatchObject({ ok: true });
  });

  it('bounds the length of the reason', () => {
    const result = declaring({ retry: { max_attempts: 2, ['k'.repeat(5_000)]: 1 } });
    expect(!result.ok && result.reason.length).toBeLessThan(300);
  });
});
