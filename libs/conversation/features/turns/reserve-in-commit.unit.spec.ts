import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { buildPrompt, initialSession } from '@antiphon/conversation-domain';
import type { ModelPrompt } from '@antiphon/providers-domain';
import type { OpenTurn, SessionState } from '@antiphon/conversation-domain';
import { ReservesInCommit, createAgentPrompts, toReservation } from './reserve-in-commit.js';
import type { KnownParts } from './reserve-in-commit.js';

const inputBound = (prompt: ModelPrompt): number => Buffer.byteLength(JSON.stringify(prompt));
const create = (
  systemPrompt: string | null = 'Be kind.',
  agentPrompts = createAgentPrompts(),
): ReservesInCommit =>
  new ReservesInCommit(
    {
      agentPrompts,
      budget: {
        inputBound,
        knowsProvider: () => true,
        maxOutputOf: () => 4_096,
        lifetimeMsOf: () => 61_000,
        chainOf: () => ['main', 'parent'],
      },
      policy: { findAgent: () => ({ systemPrompt }) },
    } as never,
    'default',
  );

const PARTS: KnownParts = {
  systemPrompt: 'Be kind.',
  remembered: { soul: 'a soul', facts: [{ subject: 's', predicate: 'p', object: 'o' }] },
  attached: null,
  tools: [{ name: 'echo', description: 'returns its input', inputSchema: { type: 'object' } }],
  window: 5,
  contextTokens: 4_000,
};

const CALL = {
  ...{ turnId: 'turn', attempt: 2, step: 1, tryNumber: 1, provider: 'p', model: 'm' },
  reservationId: '5f0f9a5e-93c5-4a4e-8b39-0f4cbe9f2d11',
};
const stateOf = (open: Partial<OpenTurn> = {}, more: Partial<SessionState> = {}): SessionState => ({
  ...initialSession(),
  started: { sessionId: 's', sessionKey: 'main:ws:a:b', agentId: 'main' },
  open: {
    ...{ turnId: 'turn', content: 'hi', chain: [], received: [], returned: null, cancelRequested: false },
    ...{ steps: [], call: CALL, tries: [], caller: 'key/1' },
    ...open,
  } as OpenTurn,
  ...more,
});
const past = (content: string, text: string): SessionState['recent'][number] => ({
  ...{ turnId: content, content, received: [], ending: 'completed', note: '' },
  steps: [{ text, provider: 'p', model: 'm', calls: [] }],
});

const EARLIER = stateOf({ turnId: 'earlier' });
const askFor = (state: SessionState, last = EARLIER) => {
  const reserves = create();
  reserves.remember(last, PARTS);
  return reserves.extensionFor(state)?.reserve;
};

describe('a reservation in the commit of a turn', () => {
  it('asks for the call with the bound of the session as it will be', () => {
    const state = stateOf({}, { recent: [past('first', 'answer')] });
    const exact = inputBound(buildPrompt(state, state.open!, { ...PARTS, choice: CALL }));
    expect(askFor(state)).toMatchObject({
      ...{ reservationId: CALL.reservationId, agentId: 'main', agents: ['main', 'parent'] },
      ...{ sessionKey: 'main:ws:a:b', caller: 'key/1', inputBound: exact + 1_024 },
      ...{ maxOutputTokens: 4_096, lifetimeMs: 61_000 },
    });
  });

  it('asks for the exact bound of a later step, whose turn has its memory and tools already', () => {
    const step = { text: '', provider: 'p', model: 'm', calls: [] };
    const state = stateOf({ steps: [step] }, { recent: [past('first', 'answer')] });
    const exact = inputBound(buildPrompt(state, state.open!, { ...PARTS, choice: CALL }));
    expect(askFor(state, stateOf())?.inputBound).toBe(exact);
  });

  it('has a bound of at least the prompt while memory grows by less than the slack', () =>
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.string(), fc.string({ unit: 'grapheme' })), { maxLength: 9 }),
        fc.string({ unit: 'grapheme', maxLength: 300 }),
        fc.array(fc.string({ maxLength: 40 }), { maxLength: 4 }),
        (turns, content, facts) => {
          const state = stateOf({ content }, { recent: turns.map(([asked, said]) => past(asked, said)) });
          const remembered = {
            soul: PARTS.remembered.soul,
            facts: facts.map((object) => ({ subject: 'user', predicate: 'said', object })),
          };
          const sent = buildPrompt(state, state.open!, { ...PARTS, remembered, choice: CALL });
          return inputBound(sent) <= (askFor(state)?.inputBound ?? 0);
        },
      ),
    ));

  it('leaves as much more room as a prompt was too large, within bounds', () => {
    const reserves = create();
    reserves.remember(EARLIER, PARTS);
    const bound = () => reserves.extensionFor(stateOf())?.reserve?.inputBound ?? 0;
    const first = bound();
    reserves.widen(EARLIER, 2_000);
    expect(bound()).toBe(first + 2_000);
    reserves.widen(EARLIER, 50_000);
    expect(bound()).toBe(first + 7 * 1_024);
  });

  it('asks for the first call of a session by the last prompt of its agent', () => {
    const prompts = createAgentPrompts();
    const other = create('Be kind.', prompts);
    other.remember(EARLIER, PARTS);
    other.widen(EARLIER, 100);
    const reserves = create('Be kind.', prompts);
    expect(reserves.extensionFor(stateOf())?.reserve?.inputBound).toBe(
      (askFor(stateOf())?.inputBound ?? 0) + 100,
    );
    const otherAgent = { sessionId: 's', sessionKey: 'other:ws:a:b', agentId: 'other' };
    expect(reserves.extensionFor(stateOf({}, { started: otherAgent }))).toBeNull();
  });

  const UNKNOWN: readonly (readonly [string, SessionState])[] = [
    ['begins no call', stateOf({ call: null })],
    ['has attached files', stateOf({}, { attached: [{ path: '/a', digest: 'd' } as never] })],
    ['has another role file', stateOf({ role: { digest: 'other' } as never })],
    ['was asked by another agent', stateOf({ chain: [{ agentId: 'a' } as never] })],
    [
      'is of a task',
      stateOf(
        {},
        {
          started: {
            ...{ sessionId: 's', agentId: 'main' },
            sessionKey: 'main:task:5f0f9a5e-93c5-4a4e-8b39-0f4cbe9f2d11:1',
          },
        },
      ),
    ],
  ];
  it.each(UNKNOWN)('asks for nothing if the turn %s', (_what, state) =>
    expect(askFor(state)).toBeUndefined(),
  );

  it('asks for nothing before the first prompt', () => expect(create().extensionFor(stateOf())).toBeNull());

  it('uses the system prompt that the agent has now', () => {
    const longer = create('Be kind. '.repeat(100));
    longer.remember(EARLIER, PARTS);
    const bound = longer.extensionFor(stateOf())?.reserve?.inputBound ?? 0;
    expect(bound - (askFor(stateOf())?.inputBound ?? 0)).toBe(892);
  });

  it('asks less and less often while it is left out, and each time again once it is made', () => {
    const reserves = create();
    reserves.remember(stateOf(), PARTS);
    const asks = (): boolean => reserves.extensionFor(stateOf()) !== null;
    const countSkipped = (): number => {
      let skipped = 0;
      while (!asks()) skipped += 1;
      return skipped;
    };
    const skips = Array.from({ length: 8 }, () => {
      reserves.record(false);
      return countSkipped();
    });
    expect(skips).toEqual([1, 2, 4, 8, 16, 32, 32, 32]);
    reserves.record(true);
    expect(countSkipped()).toBe(0);
  });

  it('is used for a prompt within it only', () => {
    const made = { inputBound: 100, outputBound: 10, price: null } as never;
    expect(toReservation(made, 100)).toEqual({
      ...{ granted: true, inputBound: 100, maxOutputTokens: 10, price: null },
    });
    expect(toReservation(made, 101)).toBeNull();
  });
});
