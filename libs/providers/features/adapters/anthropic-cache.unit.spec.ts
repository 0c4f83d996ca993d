import { describe, expect, it } from '@jest/globals';
import type { ModelMessage } from '@antiphon/providers-domain';
import { findParameters } from '@antiphon/config';
import { renderAnthropic } from './anthropic-request.js';
import { cacheMarks, markCached } from './anthropic-cache.js';

const user = (text: string, context?: string): ModelMessage => ({
  ...{ role: 'user', text },
  ...(context === undefined ? {} : { context }),
});
const says = (text: string, calls = 0): ModelMessage => ({
  ...{ role: 'assistant', text },
  toolCalls: Array.from({ length: calls }, (_, n) => ({ id: `c${n}`, name: 'read', input: {} })),
});
const results = (count: number): ModelMessage => ({
  role: 'tool',
  results: Array.from({ length: count }, (_, n) => ({
    ...{ id: `c${n}`, name: 'read', content: 'x', isError: false },
  })),
});
const turns = (count: number): ModelMessage[] =>
  Array.from({ length: count }, (_, n) => [user(`q${n}`), says('', 10), results(10), says(`a${n}`)]).flat();

describe('marks for the prompt cache of Anthropic', () => {
  it('are at the ends of this prompt and of the last one, in a turn without a context', () =>
    expect(cacheMarks([...turns(2), user('now')])).toEqual([8, 6, 3]));

  it('are at the end of each conversation before a turn with a context', () =>
    expect(cacheMarks([...turns(2), user('now', 'facts')])).toEqual([8, 3, 7]));

  it('are at the ends of this prompt, of the last one and of the conversation, in later calls', () => {
    const steps = [says('', 10), results(10), says('', 10), results(10)];
    expect(cacheMarks([...turns(2), user('now', 'facts'), ...steps])).toEqual([12, 10, 7]);
    expect(cacheMarks([...turns(2), user('now'), ...steps])).toEqual([12, 10, 7]);
  });

  it('are only at what exists', () => {
    expect(cacheMarks([user('now')])).toEqual([0]);
    expect(cacheMarks([user('now', 'facts')])).toEqual([0]);
    expect(cacheMarks([...turns(1), user('now', 'facts')])).toEqual([4, 3]);
  });

  const prompt = (messages: readonly ModelMessage[], system: string) => ({
    ...{ provider: 'p', model: 'm', system, messages },
    tools: ['a', 'b'].map((name) => ({ name, description: name, inputSchema: {} })),
  });
  const { parameters } = findParameters({}, { name: 'p', kind: 'anthropic' }, 'm');
  const bodyOf = (messages: readonly ModelMessage[], system = 'Be kind.') =>
    markCached(renderAnthropic(prompt(messages, system), parameters), messages);
  const mark = { cache_control: { type: 'ephemeral' } };

  it('are on the system text, or on the last tool without one, and at most four', () => {
    const messages = [...turns(4), user('now', 'facts')];
    expect(bodyOf(messages).system).toEqual([{ type: 'text', text: 'Be kind.', ...mark }]);
    expect(bodyOf(messages, ' ').tools?.map((tool) => 'cache_control' in tool)).toEqual([false, true]);
    expect(JSON.stringify(bodyOf(messages)).split('"cache_control"')).toHaveLength(5);
    expect(JSON.stringify(bodyOf(messages, '')).split('"cache_control"')).toHaveLength(5);
  });

  it('keep the text of a message, with its context before it', () => {
    const [message] = bodyOf([user('now', 'facts')]).messages;
    expect(message?.content).toEqual([
      { type: 'text', text: 'facts' },
      { type: 'text', text: 'now', ...mark },
    ]);
    const [first, second, third] = bodyOf([user('q'), says('a'), user('now')]).messages;
    expect([first?.content, third?.content]).toEqual([
      [{ type: 'text', text: 'q', ...mark }],
      [{ type: 'text', text: 'now', ...mark }],
    ]);
    expect(JSON.stringify(second)).not.toContain('cache_control');
  });
});
