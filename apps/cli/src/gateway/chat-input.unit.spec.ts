import { PassThrough } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { ANSWERED, ANSWER_HELP, ChatInput, TOO_EARLY } from './chat-input.js';

const createInput = () => {
  const input = new PassThrough();
  const shown: string[] = [];
  const push = (text: string): void => void shown.push(text);
  const lines = new ChatInput({ input, prompt: push, note: push, cancel: () => push('cancel') });
  const type = async (...typed: string[]): Promise<void> => {
    for (const line of typed) input.write(`${line}\n`);
    await new Promise((resolve) => setImmediate(resolve));
  };
  const ask = (id: string) => lines.ask(id, () => push(`call ${id}`));
  return { input, lines, shown, type, ask };
};
const isOpen = async (promise: Promise<unknown>): Promise<boolean> =>
  (await Promise.race([promise, new Promise((resolve) => setImmediate(resolve, 'open'))])) === 'open';

describe('the question of an approval', () => {
  it('takes no line that was typed before it was shown', async () => {
    const { lines, type, ask } = createInput();
    await type('y', 'yes please');
    const answer = ask('a');
    expect(await isOpen(answer)).toBe(true);
    await type('n');
    expect(await answer).toBe(false);
    expect([await lines.nextMessage(), await lines.nextMessage()]).toEqual(['y', 'yes please']);
  });

  it('is shown after the one before it, whose line does not answer it', async () => {
    const { shown, type, ask } = createInput();
    const [first, second] = [ask('a'), ask('b')];
    expect(shown).toEqual(['call a', 'approve? [y/n] ']);
    await type('y');
    expect([await first, await isOpen(second)]).toEqual([true, true]);
    expect(shown.slice(2)).toEqual(['call b', 'approve? [y/n] ']);
    await type('no');
    expect(await second).toBe(false);
  });

  it('is not answered by a line that came with the answer of the one before it', async () => {
    const { shown, type, ask } = createInput();
    const [first, second] = [ask('a'), ask('b')];
    await type('y', 'y');
    expect([await first, await isOpen(second)]).toEqual([true, true]);
    expect(shown.slice(2)).toEqual([TOO_EARLY, 'call b', 'approve? [y/n] ']);
    await type('n');
    expect(await second).toBe(false);
  });

  it('takes only y and n, and /cancel cancels', async () => {
    const { shown, type, ask } = createInput();
    const answer = ask('a');
    await type('', 'maybe', '/cancel');
    expect(await isOpen(answer)).toBe(true);
    expect(shown.filter((text) => text === ANSWER_HELP)).toHaveLength(2);
    expect(shown).toContain('cancel');
    await type('Y');
    expect(await answer).toBe(true);
  });

  it('vanishes when it is withdrawn, and a late y is no message', async () => {
    const { lines, shown, type, ask } = createInput();
    const message = lines.nextMessage();
    const answer = ask('a');
    lines.withdraw('a');
    expect(await answer).toBeNull();
    expect(shown.at(-1)).toBe('> ');
    await type('y');
    expect([await isOpen(message), shown.at(-1)]).toEqual([true, ANSWERED]);
    await type('y');
    expect(await message).toBe('y');
  });

  it('does not take the late answer of a withdrawn one', async () => {
    const { lines, type, ask } = createInput();
    const [first, second] = [ask('a'), ask('b')];
    lines.withdraw('a');
    expect(await first).toBeNull();
    await type('y');
    expect(await isOpen(second)).toBe(true);
    await type('y');
    expect(await second).toBe(true);
  });

  it('has no answer after the end of the input', async () => {
    const { input, lines, ask } = createInput();
    const [answer, message] = [ask('a'), lines.nextMessage()];
    input.end();
    expect([await answer, await message, await ask('b')]).toEqual([null, null, null]);
  });
});
