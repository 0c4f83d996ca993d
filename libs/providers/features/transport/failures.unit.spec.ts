import { describe, expect, it } from '@jest/globals';
import { refusalFailure } from './failures.js';

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

  it.each([429, 500, 503])('with status %i has no advice: it is tried again', (status) => {
    expect(failureOf(status, { message: 'because' }).message).toBe(`provider error ${status}: because`);
  });

  it('stays one bounded line, also with a hostile model name and a long address', () => {
    const long = 'y'.repeat(5_000);
    const target = { address: long, endpoint: `http://${long}`, model: `a\nb\u001b[31m${long}` };
    const { message } = failureOf(401, { message: `first\nsecond ${long}` }, target);
    expect(message.length).toBeLessThanOrEqual(500);
    expect(message).not.toMatch(/[\u0000-\u001f]/);
  });
});
