import { describe, expect, it } from '@jest/globals';
import { parseToolPolicy } from '@antiphon/contracts/sandbox';
import { parseDescription, undescribed, grantedHosts, ungrantable } from '@antiphon/sandbox-domain';

const describing = (value: unknown) =>
  parseDescription(new TextEncoder().encode(JSON.stringify(value)), parseToolPolicy);

describe('describe()', () => {
  it('gives description, schema and whether the tool is idempotent', () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } };
    expect(describing({ description: 'Adds.', input_schema: schema, idempotent: true })).toEqual({
      ok: true,
      description: { description: 'Adds.', inputSchema: schema, idempotent: true, declares: {} },
    });
  });

  it('counts a tool as not idempotent unless it says so', () =>
    expect(describing({ description: 'Sends.' })).toMatchObject({
      description: { inputSchema: { type: 'object' }, idempotent: false },
    }));

  it('may be missing', () => expect(undescribed('x').idempotent).toBe(false));

  it('makes its texts fit for the log', () =>
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
      'idempotent as a word',
      new TextEncoder().encode('{"description":"x","idempotent":"yes"}'),
      'idempotent',
    ],
    ['100,000 levels', new TextEncoder().encode(`{"description":${'['.repeat(60_000)}`), 'too deeply'],
    ['a flood', new Uint8Array(70_000), 'at most'],
    ['bytes that are no text', Uint8Array.from([0xff, 0xfe, 0]), 'JSON object'],
  ])('is refused with %s', (_, output, reason) => {
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

  it('is a timeout, retries, or both', () => {
    expect(declared({ timeout_ms: 2_000 })).toEqual({ timeoutMs: 2_000 });
    const retry = { max_attempts: 5, backoff_ms: 200, max_backoff_ms: 5_000, on_timeout: true };
    expect(declared({ retry, timeout_ms: 10 })).toEqual({
      timeoutMs: 10,
      retry: { maxAttempts: 5, backoffMs: 200, maxBackoffMs: 5_000, onTimeout: true },
    });
  });

  it('needs only say how often; a first wait over the usual longest one is the longest', () => {
    expect(declared({ retry: { max_attempts: 2 } })).toEqual({
      retry: { maxAttempts: 2, backoffMs: 500, maxBackoffMs: 30_000, onTimeout: false },
    });
    expect(declared({ retry: { max_attempts: 2, backoff_ms: 60_000 } })).toMatchObject({
      retry: { backoffMs: 60_000, maxBackoffMs: 60_000 },
    });
  });

  it.each([
    ['more tries than anybody may have', { retry: { max_attempts: 11 } }, '"retry.max_attempts"'],
    ['no try', { retry: { max_attempts: 0 } }, '"retry.max_attempts"'],
    ['half a try', { retry: { max_attempts: 1.5 } }, '"retry.max_attempts"'],
    ['tries as a word', { retry: { max_attempts: '3' } }, '"retry.max_attempts"'],
    ['no number of tries', { retry: {} }, '"retry.max_attempts"'],
    ['no wait', { retry: { max_attempts: 2, backoff_ms: 0 } }, '"retry.backoff_ms"'],
    ['a wait of a day', { retry: { max_attempts: 2, max_backoff_ms: 86_400_000 } }, '"retry.max_backoff_ms"'],
    [
      'waits that shrink',
      { retry: { max_attempts: 2, backoff_ms: 500, max_backoff_ms: 100 } },
      'first backoff',
    ],
    ['a key that nobody knows', { retry: { max_attempts: 2, jitter: true } }, 'jitter'],
    ['a list', { retry: [] }, '"retry"'],
    ['null', { retry: null }, '"retry"'],
    ['no time', { timeout_ms: 0 }, '"timeout_ms"'],
    ['an hour', { timeout_ms: 3_600_000 }, '"timeout_ms"'],
    ['a negative time', { timeout_ms: -1 }, '"timeout_ms"'],
    ['time as a word', { timeout_ms: '5s' }, '"timeout_ms"'],
  ])('is refused with %s', (_, policy, reason) => {
    expect(declaring(policy)).toMatchObject({ ok: false, reason: expect.stringContaining(reason) });
  });

  it('is refused of a tool that may not be called twice, if it would be', () => {
    const unsafe = (retry: object) => describing({ description: 'x', retry });
    expect(unsafe({ max_attempts: 2 })).toMatchObject({
      reason: expect.stringContaining('"idempotent": true'),
    });
    expect(unsafe({ max_attempts: 1, on_timeout: true })).toMatchObject({ ok: false });
    expect(unsafe({ max_attempts: 1 })).toMatchObject({ ok: true });
  });

  it('is refused in few words, whatever the plug-in calls its keys', () => {
    const result = declaring({ retry: { max_attempts: 2, ['k'.repeat(5_000)]: 1 } });
    expect(!result.ok && result.reason.length).toBeLessThan(300);
  });
});

describe('capabilities', () => {
  it('can be none, or hosts', () => {
    expect(ungrantable([])).toBeNull();
    expect(ungrantable(['http:api.example.com'])).toBeNull();
    expect(grantedHosts(['http:API.example.com', 'store:notes'])).toEqual(new Set(['api.example.com']));
  });

  it.each([
    ['store:notes', 'store is not available yet'],
    ['gpu:0', 'unknown type "gpu"'],
    ['', 'unknown type ""'],
  ])('%s is refused clearly', (capability, reason) => expect(ungrantable([capability])).toContain(reason));
});
