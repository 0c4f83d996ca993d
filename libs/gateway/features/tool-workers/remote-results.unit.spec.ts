import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { MAX_RESULT_BYTES } from '@antiphon/contracts/sandbox';
import { RemoteResults } from './remote-results.js';
import { WorkerAttempts } from './worker-attempts.js';

const CALL = { callId: 'call', sessionId: 'session', name: 'weather' };
const given = (maxBytes?: number) => {
  const results = new RemoteResults(() => 0, maxBytes);
  const attempts = new WorkerAttempts(results);
  const add = (id = 'one') => attempts.add(id, CALL, 60_000, () => undefined);
  return { results, attempts, add };
};

describe('the result of a remote tool', () => {
  it('is joined from its parts, and in the reply if it is small', async () => {
    const { attempts, add, results } = given();
    const ended = add();
    // A part may end between the two halves of a character.
    expect(attempts.addPart('one', 'a\ud83d')).toBe(true);
    expect(results.partialBytes).toBeGreaterThan(0);
    expect(attempts.complete('one', '\ude00b', false)).toBe(true);
    expect(await ended).toEqual({ end: 'result', content: 'a😀b', isError: false });
    expect(results.partialBytes).toBe(0);
  });

  it('is held for its caller if it is large, until it is released', async () => {
    const { attempts, add, results } = given();
    const ended = add();
    const text = `head${'x'.repeat(1_000_000)}`;
    attempts.addPart('one', text);
    attempts.complete('one', 'tail', true);
    const digest = createHash('sha256').update(`${text}tail`).digest('hex');
    expect(await ended).toEqual({ end: 'held', size: 1_000_008, digest, isError: true });
    expect(results.read('one', 0)?.subarray(0, 4).toString()).toBe('head');
    expect(results.read('one', 1_000_004)?.toString()).toBe('tail');
    results.release('one');
    expect(results.read('one', 0)).toBeNull();
  });

  it.each([
    ['over 64 MiB', undefined, 'x'.repeat(MAX_RESULT_BYTES)],
    ['for which others leave no room', 1_000, 'x'.repeat(1_000)],
  ])('is refused if it is %s', async (_, maxBytes, part) => {
    const { attempts, add, results } = given(maxBytes);
    const ended = add();
    attempts.addPart('one', part);
    attempts.addPart('one', 'y');
    expect(await ended).toEqual({ end: 'too_large', bytes: part.length + 1 });
    expect(attempts.complete('one', 'z', false)).toBe(false);
    expect(results.partialBytes).toBe(0);
  });

  it('is refused if it has too many parts', async () => {
    const { attempts, add } = given();
    const ended = add();
    for (let n = 0; n < 2_049; n++) attempts.addPart('one', 'x');
    expect(await ended).toMatchObject({ end: 'too_large' });
  });

  it('leaves no bytes behind when its program goes away', async () => {
    const { attempts, add, results } = given();
    const ended = add();
    attempts.addPart('one', 'half');
    attempts.loseAll();
    expect(await ended).toEqual({ end: 'lost' });
    expect(results.partialBytes).toBe(0);
    expect(attempts.addPart('one', 'late')).toBe(false);
  });
});
