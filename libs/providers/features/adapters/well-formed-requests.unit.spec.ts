import { describe, expect, it } from '@jest/globals';
import { NO_OPEN_CIRCUITS } from '@antiphon/providers-domain';
import { buildPrompt } from '@antiphon/conversation-domain';
import type { AgentPolicy } from '@antiphon/conversation-domain';
import type { ModelPrompt } from '@antiphon/providers-domain';
import { DriverSimulation } from '@antiphon/conversation-domain/simulation';
import { anthropicFaults, openAiFaults } from '@antiphon/testing/providers';
import fc from 'fast-check';
import { findParameters } from '@antiphon/config';
import type { ModelParameters, ProviderKind } from '@antiphon/config';
import { renderAnthropic } from './anthropic-request.js';
import { renderOpenAi } from './openai-request.js';

const policy = fc.record<AgentPolicy>({
  provider: fc.constant('first'),
  model: fc.constant('m'),
  fallback: fc.constantFrom(null, { provider: 'second', model: 'n' }),
  maxIterations: fc.integer({ min: 1, max: 5 }),
  openCircuits: fc.constant(NO_OPEN_CIRCUITS),
  guarded: fc.constantFrom(new Set<string>(), new Set(['unsafe'])),
});
/** Actions between two steps: the driver runs or crashes, the user submits or cancels. */
const ACTS = ['drive', 'drive', 'drive', 'drive', 'submit', 'blank', 'cancel', 'crash'] as const;
const acts = fc.array(fc.constantFrom(...ACTS), { maxLength: 80 });
const chance = fc.infiniteStream(fc.nat());

const act = (simulation: DriverSimulation, name: (typeof ACTS)[number]): void => {
  if (name === 'drive') simulation.drive();
  else if (name === 'submit') simulation.submit('what is it?');
  else if (name === 'blank') simulation.submit(' \n');
  else if (name === 'cancel') simulation.cancel();
  else simulation.crash();
};

/** Returns the prompt of the open model call, or null without one. */
const promptOf = (simulation: DriverSimulation, contextTokens: number): ModelPrompt | null => {
  const { open } = simulation.state;
  if (!open?.call) return null;
  return buildPrompt(simulation.state, open, {
    choice: open.call,
    systemPrompt: 'Be kind.',
    remembered: { soul: null, facts: [] },
    tools: [],
    window: 3,
    contextTokens,
  });
};

interface Seen {
  requests: number;
  withTools: number;
}

/** Checks every request of generated sessions with crashes, cancellations and failing tools. */
const forEveryRequest = (law: (prompt: ModelPrompt) => void): Seen => {
  const seen: Seen = { requests: 0, withTools: 0 };
  const check = (simulation: DriverSimulation, contextTokens: number): void => {
    const prompt = promptOf(simulation, contextTokens);
    if (!prompt) return;
    seen.requests++;
    if (prompt.messages.some(({ role }) => role === 'tool')) seen.withTools++;
    law(prompt);
  };
  fc.assert(
    fc.property(
      acts,
      chance,
      policy,
      fc.integer({ min: 100, max: 4_000 }),
      (names, numbers, agent, tokens) => {
        const next = numbers[Symbol.iterator]();
        const simulation = new DriverSimulation((bound) => (next.next().value as number) % bound, agent);
        for (const name of names) {
          act(simulation, name);
          check(simulation, tokens);
        }
        while (simulation.drive()) check(simulation, tokens);
      },
    ),
    { numRuns: 300 },
  );
  return seen;
};

const parametersOf = (kind: ProviderKind, more: Partial<ModelParameters> = {}): ModelParameters => ({
  ...findParameters({ parameters: [] }, { name: 'it', kind }, 'm').parameters,
  ...more,
});

describe('the messages of a request, after any crash, cancellation or failure', () => {
  it("are well-formed by Anthropic's rules", () => {
    const seen = forEveryRequest((prompt) =>
      expect(anthropicFaults(renderAnthropic(prompt, parametersOf('anthropic')))).toEqual([]),
    );
    expect(seen.withTools).toBeGreaterThan(100);
  });

  it("are well-formed by OpenAI's rules", () => {
    const seen = forEveryRequest((prompt) =>
      expect(openAiFaults(renderOpenAi(prompt, parametersOf('openai')))).toEqual([]),
    );
    expect(seen.withTools).toBeGreaterThan(100);
  });
});

describe('messages with one tool call each', () => {
  it('are well-formed by the rules of both vendors', () => {
    const more = { parallelToolCalls: 'one' } as const;
    forEveryRequest((prompt) => {
      const openAi = renderOpenAi(prompt, parametersOf('openai', more));
      expect(openAiFaults(openAi)).toEqual([]);
      expect(anthropicFaults(renderAnthropic(prompt, parametersOf('anthropic', more)))).toEqual([]);
      const calls = openAi.messages.map((message) => ('tool_calls' in message ? message.tool_calls : []));
      expect(Math.max(0, ...calls.map((list) => list?.length ?? 0))).toBeLessThan(2);
    });
  });
});

describe('the checks of well-formed requests', () => {
  const user = { role: 'user', content: 'hi' };
  const use = { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'echo', input: {} }] };
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'x' }] };
  it.each([
    ['a use without its result', [user, use, user]],
    ['a result without its use', [result]],
    ['two answers in a row', [user, use, use]],
    ['an empty message', [{ role: 'user', content: ' ' }]],
    ['an answer at the end', [user, use]],
  ])('find %s at Anthropic', (_, messages) => expect(anthropicFaults({ messages })).not.toEqual([]));

  const calls = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'a', function: { arguments: '{}' } }],
  };
  const toolResult = { role: 'tool', tool_call_id: 'a', content: 'x' };
  it.each([
    ['a call without its result', [user, calls, user]],
    ['a result twice', [user, calls, toolResult, toolResult]],
    ['a result of nothing', [user, toolResult]],
    ['an empty answer', [user, { role: 'assistant', content: '' }, user]],
  ])('find %s at OpenAI', (_, messages) => expect(openAiFaults({ messages })).not.toEqual([]));

  it('accept well-formed messages', () => {
    expect(anthropicFaults({ messages: [user, use, result] })).toEqual([]);
    expect(openAiFaults({ messages: [user, calls, toolResult] })).toEqual([]);
  });
});
