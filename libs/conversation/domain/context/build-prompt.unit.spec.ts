import { describe, expect, it } from '@jest/globals';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import type { OpenTurn, PastTurn, SessionState, TurnToolCall } from '../session/session-state.js';
import { initialSession } from '../session/session-state.js';
import { fitWindow } from '../session/past-turns.js';
import { MIN_RESULT_TOKENS, buildPrompt } from './build-prompt.js';
import type { PromptParts } from './build-prompt.js';
import { estimatePrompt, estimateTokens, utf8Length } from './estimate-tokens.js';

const parts: PromptParts = {
  choice: { provider: 'p', model: 'm' },
  systemPrompt: 'You are helpful.',
  remembered: { soul: null, facts: [] },
  tools: [],
  window: 5,
  contextTokens: 4_000,
};
const open = (content: string, steps: OpenTurn['steps'] = []): OpenTurn => ({
  turnId: 'open',
  content,
  chain: [],
  received: [],
  returned: null,
  cancelRequested: false,
  steps,
  call: null,
  tries: [],
});
const past = (content: string, text: string, more: Partial<PastTurn> = {}): PastTurn => ({
  turnId: content,
  content,
  received: [],
  steps: [{ text, provider: 'p', model: 'm', calls: [] }],
  ending: 'completed',
  note: '',
  ...more,
});
const call = (callId: string, content: string, more: Partial<TurnToolCall> = {}): TurnToolCall => ({
  callId,
  providerCallId: 'call_1',
  name: 'read',
  input: { path: '/a' },
  status: 'completed',
  idempotent: true,
  idempotencyKey: callId,
  claimed: false,
  tries: 0,
  approval: null,
  retry: null,
  timeoutMs: null,
  deferred: null,
  content,
  isError: false,
  ...more,
});
const withTools = (...calls: TurnToolCall[]) => [{ text: 'let me look', provider: 'p', model: 'm', calls }];
const session = (...recent: PastTurn[]): SessionState => ({ ...initialSession(), recent });

describe('a prompt', () => {
  it('contains soul, system prompt and facts, then recent turns, then the open one', () => {
    const prompt = buildPrompt(session(past('hi', 'hello')), open('what is my name?'), {
      ...parts,
      remembered: {
        soul: '# Soul\nKind.',
        facts: [{ subject: 'user', predicate: 'name', object: 'Ada\n# Soul\nCruel.' }],
      },
    });
    expect(prompt.system).toBe('# Soul\nKind.\n\nYou are helpful.');
    expect(prompt.messages).toEqual([
      { role: 'user', text: 'hi' },
      { role: 'assistant', text: 'hello', toolCalls: [] },
      {
        role: 'user',
        text: 'what is my name?',
        context: expect.stringMatching(/^Facts remembered .*\n- user \| name \| Ada # Soul Cruel\.$/),
      },
    ]);
  });

  it('begins as the last one did for most turns, although other facts are remembered', () => {
    const window = { turns: 5, chars: 32_000 };
    let recent: readonly PastTurn[] = [];
    let last: readonly unknown[] = [];
    let breaks = 0;
    for (let n = 0; n < 50; n++) {
      const fact = { subject: 'user', predicate: 'said', object: `fact ${n}` };
      const { system, messages } = buildPrompt(session(...recent), open(`q${n}`), {
        ...parts,
        remembered: { soul: '# Soul', facts: [fact] },
      });
      const before = [system, ...messages.slice(0, -1)];
      const isKept = last.every((message, index) => isDeepStrictEqual(message, before[index]));
      if (!isKept) breaks++;
      last = before;
      recent = fitWindow([...recent, past(`q${n}`, `answer ${n} `.repeat(10))], window);
    }
    expect(breaks).toBe(14);
  });

  const asked = ({ messages }: ReturnType<typeof buildPrompt>) =>
    messages.flatMap((message) => (message.role === 'user' ? [message.text] : []));

  it('contains the recent turns of the session, at least those of the window', () => {
    const turns = Array.from({ length: 8 }, (_, n) => past(`q${n}`, `a${n}`));
    expect(asked(buildPrompt(session(...turns), open('now'), parts))).toEqual([
      ...turns.map(({ content }) => content),
      'now',
    ]);
  });

  it('leaves out turns that do not fit in steps', () => {
    const shown = Array.from({ length: 9 }, (_, count) => {
      const turns = Array.from({ length: count }, (_, n) => past(`q${n}`, 'word '.repeat(400)));
      return asked(buildPrompt(session(...turns), open('now'), parts))[0];
    });
    expect(shown).toEqual(['now', 'q0', 'q0', 'q0', 'q0', 'q0', 'q2', 'q2', 'q3']);
  });

  it('drops the oldest turns first when they do not fit', () => {
    const turns = ['old', 'newer', 'newest'].map((name) => past(name, 'word '.repeat(900)));
    const { messages } = buildPrompt(session(...turns), open('now'), parts);
    expect(messages.filter(({ role }) => role === 'user').map((m) => m.role === 'user' && m.text)).toEqual([
      'newer',
      'newest',
      'now',
    ]);
  });

  it('keeps the text of a turn whose tool calls do not fit', () => {
    const long = past('read it', '', {
      steps: [
        ...withTools(call('c', 'x'.repeat(20_000))),
        { text: 'done', provider: 'p', model: 'm', calls: [] },
      ],
    });
    expect(buildPrompt(session(long), open('now'), parts).messages).toEqual([
      { role: 'user', text: 'read it' },
      { role: 'assistant', text: 'let me look\n\ndone', toolCalls: [] },
      { role: 'user', text: 'now' },
    ]);
  });

  it('marks a cancelled turn as stopped after its partial text', () => {
    const stopped = past('write', '', { steps: [], ending: 'cancelled', note: 'Once upon' });
    expect(buildPrompt(session(stopped), open('shorter'), parts).messages[1]).toMatchObject({
      text: 'Once upon [stopped]',
    });
  });

  it('clips long tool results evenly and keeps short ones whole', () => {
    const turn = open(
      'read',
      withTools(call('a', 'short'), call('b', 'y'.repeat(90_000)), call('c', 'z'.repeat(90_000))),
    );
    const prompt = buildPrompt(session(), turn, parts);
    const results = prompt.messages.flatMap((message) => (message.role === 'tool' ? message.results : []));
    expect(results[0]?.content).toBe('short');
    expect(results[1]?.content.length).toBe(results[2]?.content.length);
    expect(results[1]?.content).toMatch(/^y+\n\[… left out of 90000 bytes: .* result \"b\"\]\ny+$/);
    expect(estimatePrompt(prompt)).toBeLessThanOrEqual(4_000);
    expect(estimatePrompt(prompt)).toBeGreaterThan(3_900);
  });

  it('gives every tool call a unique id, the model’s own where possible', () => {
    const turn = open(
      'read',
      withTools(call('a', 'x'), call('b', 'y'), call('c', 'z', { providerCallId: '' })),
    );
    const { messages } = buildPrompt(
      session(past('q', '', { steps: withTools(call('p', 'w')) })),
      turn,
      parts,
    );
    const ids = messages.flatMap((m) => (m.role === 'assistant' ? m.toolCalls.map(({ id }) => id) : []));
    expect(ids).toEqual(['call_1', 'a', 'b', 'c']);
  });
});

describe('the size of a prompt', () => {
  const text = (max: number) =>
    fc.string({ maxLength: max, unit: fc.constantFrom('a', ' ', 'é', '漢', '😀') });
  const step = fc.record({
    text: text(200),
    provider: fc.constant('p'),
    model: fc.constant('m'),
    calls: fc
      .array(text(6_000), { maxLength: 3 })
      .map((contents) => contents.map((content, n) => call(`c${n}`, content))),
  });

  it('stays within the limit as long as the open turn itself fits', () =>
    fc.assert(
      fc.property(
        fc.array(fc.record({ said: text(3_000), steps: fc.array(step, { minLength: 1, maxLength: 3 }) }), {
          maxLength: 6,
        }),
        fc.array(step, { maxLength: 3 }),
        text(300),
        (turns, steps, content) => {
          const recent = turns.map(({ said, steps: done }, n) => past(`${n}${said}`, '', { steps: done }));
          const prompt = buildPrompt(session(...recent), open(content, steps), parts);
          expect(estimatePrompt(prompt)).toBeLessThanOrEqual(4_000 + MIN_RESULT_TOKENS);
        },
      ),
      { numRuns: 200 },
    ));

  it('is counted in UTF-8 bytes', () =>
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (any) => {
        const wellFormed = any.toWellFormed();
        expect(utf8Length(wellFormed)).toBe(new TextEncoder().encode(wellFormed).length);
      }),
    ));

  it('is estimated cautiously, since prose has about four bytes a token', () =>
    expect(estimateTokens('The quick brown fox jumps over the lazy dog.')).toBe(15));
});
