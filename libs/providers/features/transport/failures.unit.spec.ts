import { describe, expect, it } from '@jest/globals';
import { refusalFailure, streamedFailure } from './failures.js';

const TARGET = {
  address: '127.0.0.1:80',
  endpoint: 'http://127.0.0.1/v1/chat/completions',
  model: 'gpt-9',
};

/** Returns the failure of a response with this status and error. */
const failureOf = (status: number, error: object, target = TARGET) =>
  refusalFailure({ status, headers: {}, body: JSON.stringify({ error }) }, target, (text) => text, 0);

describe('a refusal of a provider', () => {
  it.each([
    [401, {}, 'the provider refused the key'],
    [403, {}, 'the provider refused the key'],
    [402, {}, 'the account at the vendor has no credit'],
    [429, { code: 'insufficient_quota' }, 'the account at the vendor has no credit'],
    [404, {}, 'check the name of the model and base_url'],
    [400, { code: 'model_not_found' }, 'check the name of the model and base_url'],
    [400, { type: 'no_db_connection', code: '400' }, 'the provider refused the key'],
    [400, {}, 'the provider does not accept this request'],
    [308, {}, 'a redirect is not followed: set base_url to the final address'],
  ])('with status %i and %j says what to do, for which model and where', (status, more, advice) => {
    const { message, refused } = failureOf(status, { message: `because ${'x'.repeat(2_000)}`, ...more });
    expect(message).toContain(`; ${advice}`);
    expect(message.endsWith(`(model gpt-9 at ${TARGET.endpoint})`)).toBe(true);
    expect(message.length).toBeLessThanOrEqual(500);
    expect(refused).toBe(true);
  });

  it.each([
    'Invalid model name passed in model=gpt-9. Call `/v1/models` to view available models',
    'gpt-9 is not a valid model ID',
    'Model Not Exist',
    'Model not found gpt-9',
  ])('with status 400 names an unknown model as such, where only its text does: %s', (message) => {
    expect(failureOf(400, { message }).message).toContain('; check the name of the model and base_url');
  });

  it.each([
    [429, { message: 'slow down' }, 'the account is over its rate at the vendor', true],
    [429, { message: 'Rate limit reached on tokens per min (TPM)' }, 'the account is over its rate', true],
    [429, { message: 'Rate limit reached on requests per day (RPD)' }, "the account's quota for this", false],
    [429, { message: 'Rate limit exceeded: free-models-per-day' }, "the account's quota for this", false],
    [429, { message: 'Too many tokens per day, please wait' }, "the account's quota for this", false],
    [429, { message: 'quota', code: 'insufficient_quota' }, 'the account at the vendor has no credit', false],
    [429, { message: 'Your credit balance is too low' }, 'the account at the vendor has no credit', false],
    [429, { type: 'engine_overloaded_error' }, 'the provider is overloaded', true],
    [503, { message: 'busy' }, 'the provider is overloaded', true],
    [529, { type: 'overloaded_error' }, 'the provider is overloaded', true],
    [503, { message: 'Loading model', type: 'unavailable_error' }, 'the server is loading its model', true],
    [500, { message: 'oops' }, 'the fault is at the provider', true],
    [502, { message: 'Provider returned error' }, 'the fault is at the provider', true],
    [504, {}, 'the fault is at the provider', true],
  ])('with status %i and %j says what to do; it is tried again: %s, %s', (status, error, advice, isTried) => {
    const { message, retryable } = failureOf(status, error);
    expect(message).toContain(`; ${advice}`);
    expect(message.endsWith(`(model gpt-9 at ${TARGET.endpoint})`)).toBe(true);
    expect(retryable).toBe(isTried);
  });

  it.each([
    [400, { code: 'context_length_exceeded' }],
    [400, { type: 'exceed_context_size_error', message: 'request (6032 tokens) exceeds the size' }],
    [400, { message: 'prompt is too long: 208310 tokens > 200000 maximum' }],
    [400, { message: 'The input token count (1048577) exceeds the maximum number of tokens.' }],
    [413, { message: 'Request too large' }],
  ])('with status %i and %j says that the request is too long', (status, error) => {
    const { message, retryable } = failureOf(status, error);
    expect(message).toContain('; the request is longer than the model accepts: attach less');
    expect(retryable).toBe(false);
  });

  describe('that asks to wait', () => {
    const waiting = (status: number, headers: Record<string, string>, error: object) =>
      refusalFailure({ status, headers, body: JSON.stringify({ error }) }, TARGET, (text) => text, 0);
    const info = (retryDelay: string) => ({
      ...{ message: 'You exceeded your current quota.', status: 'RESOURCE_EXHAUSTED' },
      details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay }],
    });

    it.each([
      ['seconds', { 'retry-after': '30' }, {}, 'it asks to wait 30 s', 30_000],
      ['milliseconds', { 'retry-after-ms': '1500' }, {}, 'it asks to wait 2 s', 1_500],
      ['a date', { 'retry-after': 'Thu, 01 Jan 1970 00:00:07 GMT' }, {}, 'it asks to wait 7 s', 7_000],
      ['an hour', { 'retry-after': '3600' }, {}, 'it asks to wait 3600 s', 60_000],
      ["Google's details", {}, info('37.4s'), 'it asks to wait 38 s', 37_400],
      ['a text in seconds', {}, { message: 'Please try again in 20s.' }, 'it asks to wait 20 s', 20_000],
      ['a text in minutes', {}, { message: 'try again in 7m12.5s' }, 'it asks to wait 433 s', 60_000],
      ['a text in ms', {}, { message: 'try again in 600ms.' }, 'it asks to wait 1 s', 600],
    ])('by %s says how long', (_form, headers, error, text, retryAfterMs) => {
      const failure = waiting(429, headers, error);
      expect(failure.message).toContain(`; ${text}; `);
      expect(failure.retryAfterMs).toBe(retryAfterMs);
    });

    it('also by a status other than 429', () => {
      expect(waiting(503, { 'retry-after': '5' }, { message: 'busy' }).message).toBe(
        'provider error 503: busy; it asks to wait 5 s; the provider is overloaded: send again later, ' +
          `or give the agent a fallback (model gpt-9 at ${TARGET.endpoint})`,
      );
    });

    it.each([
      ['no wait', {}],
      ['a wait that has passed', { 'retry-after': '-5' }],
      ['an unreadable wait', { 'retry-after': 'abc' }],
    ])('but names %s says none', (_form, headers: Record<string, string>) => {
      expect(waiting(429, headers, { message: 'slow down' }).message).not.toContain('asks to wait');
    });

    it('until the next day is not tried again', () => {
      const details = [{ violations: [{ quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier' }] }];
      const failure = waiting(429, {}, { ...info('20s'), details: [...info('20s').details, ...details] });
      expect(failure.message).toContain("; the account's quota for this period is used up");
      expect(failure.retryable).toBe(false);
    });
  });

  it('stays one bounded line, also with a hostile model name and a long address', () => {
    const long = 'y'.repeat(5_000);
    const target = { address: long, endpoint: `http://${long}`, model: `a\nb\u001b[31m${long}` };
    const { message } = failureOf(401, { message: `first\nsecond ${long}` }, target);
    expect(message.length).toBeLessThanOrEqual(500);
    expect(message).not.toMatch(/[\u0000-\u001f]/);
  });
});

describe('an error within a stream', () => {
  const said = (error: object) => streamedFailure({ error }, (text) => text, { hasBegun: false });

  it.each([
    [{ type: 'overloaded_error', message: 'Overloaded' }, '; the provider is overloaded', true],
    [{ code: 429, message: 'slow down' }, '; the account is over its rate at the vendor', true],
    [{ type: 'rate_limit_error', message: 'too fast' }, '; the account is over its rate', true],
    [{ code: 502, message: 'died' }, '; the fault is at the provider', true],
    [{ code: 429, message: 'requests per day' }, "; the account's quota for this period", false],
  ])('as %j says what to do: %s; it is tried again: %s', (error, advice, isTried) => {
    const { message, retryable } = said(error);
    expect(message).toContain(advice);
    expect(retryable).toBe(isTried);
  });

  it('without a known remedy has the text of the provider alone', () => {
    const { message } = said({ type: 'invalid_request_error', message: 'not like this' });
    expect(message).toBe('provider error in the stream: not like this');
  });
});
