import { describe, expect, it } from '@jest/globals';
import { backoffMs, readAnswer } from './read-answer.js';
import { splitText } from './split-text.js';

const TELEGRAM = {
  ok: 'ok',
  error: 'description',
  retry_after: 'parameters.retry_after',
  id: 'result.message_id',
};
const SLACK = { ok: 'ok', error: 'error', id: 'ts' };
const answer = (status: number, body: unknown, retryAfter: string | null = null) => ({
  ...{ status, retryAfter, body: typeof body === 'string' ? body : JSON.stringify(body) },
});

describe('the answer of a platform', () => {
  it.each([
    [
      'a success',
      answer(200, { ok: true, result: { message_id: 7 } }),
      TELEGRAM,
      { kind: 'sent', platformId: '7' },
    ],
    ['a success without JSON', answer(204, ''), {}, { kind: 'sent', platformId: null }],
    [
      'a limit in the body',
      answer(429, { ok: false, parameters: { retry_after: 3 } }, '9'),
      TELEGRAM,
      { kind: 'later', code: 'HTTP.429', afterMs: 3_000 },
    ],
    ['a limit in a header', answer(429, '', '2'), SLACK, { kind: 'later', code: 'HTTP.429', afterMs: 2_000 }],
    [
      'a limit with 200',
      answer(200, { ok: false, error: 'ratelimited' }),
      SLACK,
      { kind: 'later', code: 'CHANNEL.LIMITED', afterMs: null },
    ],
    ['a fault', answer(503, ''), {}, { kind: 'later', code: 'HTTP.503', afterMs: null }],
    ['a lost answer', answer(504, ''), {}, { kind: 'unknown', code: 'HTTP.504' }],
    [
      'a refusal',
      answer(403, { description: 'bot was blocked' }),
      TELEGRAM,
      { kind: 'refused', code: 'HTTP.403', detail: 'bot was blocked' },
    ],
    [
      'a refusal with 200',
      answer(200, { ok: false, error: 'channel_not_found' }),
      SLACK,
      { kind: 'refused', code: 'CHANNEL.NOT_OK', detail: 'channel_not_found' },
    ],
    ['a redirect', answer(302, ''), {}, { kind: 'refused', code: 'HTTP.302', detail: null }],
  ])('is read as %s', (_what, given, rules, verdict) => expect(readAnswer(given, rules)).toEqual(verdict));

  it('asks for no delay above an hour, and backs off up to five minutes', () => {
    expect(readAnswer(answer(429, '', '999999'), {})).toMatchObject({ afterMs: 3_600_000 });
    expect([1, 2, 3, 20].map(backoffMs)).toEqual([1_000, 2_000, 4_000, 300_000]);
  });
});

describe('a long reply', () => {
  it('is split after lines and words, and keeps every character', () => {
    const text = `${'word '.repeat(30)}\n\n${'x'.repeat(250)}`;
    const parts = splitText(text, 100, 10);
    expect(parts.every((part) => part.length <= 100)).toBe(true);
    expect(parts.join('').replaceAll(/\s/g, '')).toBe(text.replaceAll(/\s/g, ''));
  });

  it('is split within no UTF-16 pair, and ends with an ellipsis after the last part', () => {
    const parts = splitText('😀'.repeat(60), 51, 100);
    expect(parts.every((part) => part.isWellFormed())).toBe(true);
    const cut = splitText('y'.repeat(1_000), 100, 2);
    expect([cut.length, cut[1]?.endsWith('…'), cut[1]?.length]).toEqual([2, true, 100]);
    expect(splitText('  ', 100, 2)).toEqual([]);
  });
});
