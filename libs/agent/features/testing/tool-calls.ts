import { jest } from '@jest/globals';
import { TEXTS, textOf } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import type { ModelToolResult } from '@antiphon/providers-domain';
import type { RecordedEvent } from '@antiphon/event-store';
import { newAddress, submitTo } from './agent-world.js';
import type { AgentWorld, TestProcess } from './agent-world.js';
import { asksFor, says } from './test-model.js';

/** A call that the scripted model asks for. */
export interface ToolCall {
  readonly name: string;
  readonly input: Record<string, unknown>;
}
/** A call, or what returns it when the calls before it have ended. */
type NextCall = ToolCall | (() => Promise<ToolCall>);

export const call = (name: string, input: Record<string, unknown>): ToolCall => ({ name, input });

export interface CalledTools {
  readonly sessionId: string;
  /** Result of each call, or its code and message if it failed. */
  readonly results: readonly string[];
  readonly events: readonly RecordedEvent[];
}

const MAX_MS = 60_000;

const resultsOf = (events: readonly RecordedEvent[]): string[] =>
  events.flatMap(({ type, data }) =>
    type === 'ToolCallCompleted'
      ? [String(data['content'])]
      : type === 'ToolCallFailed'
        ? [`${String(data['code'])}: ${textOf(data['cause'] as unknown as Cause)}`]
        : [],
  );

/** Runs calls one after another in one turn of a new session. */
export const runCalls = async (
  world: AgentWorld,
  process: TestProcess,
  ...calls: readonly NextCall[]
): Promise<CalledTools> => {
  let made = 0;
  world.model.reply = async () => {
    const step = calls[made++];
    const next = typeof step === 'function' ? await step() : step;
    return next ? asksFor({ name: next.name, input: next.input as never }) : says('done');
  };
  const { sessionId } = await submitTo(process, { address: newAddress('main') }, 'work');
  const events = await world.ended(sessionId, 1, MAX_MS);
  return { sessionId, results: resultsOf(events), events };
};

/** Runs calls of one step of a model at once. Returns the results that the model got. */
export const runStep = async (
  world: AgentWorld,
  process: TestProcess,
  ...calls: readonly ToolCall[]
): Promise<readonly ModelToolResult[]> => {
  let made = 0;
  world.model.reply = () =>
    Promise.resolve(
      made++ === 0
        ? asksFor(...calls.map(({ name, input }) => ({ name, input: input as never })))
        : says('done'),
    );
  const { sessionId } = await submitTo(process, { address: newAddress('main') }, 'work');
  await world.ended(sessionId, 1, MAX_MS);
  const messages = world.model.requests.at(-1)?.messages ?? [];
  return messages.flatMap((message) => (message.role === 'tool' ? message.results : []));
};

/**
 * Returns the causes of the refused calls, once with the texts of this code and once with another
 * text for every cause.
 */
export const causesInTwoWordings = async (
  calls: () => Promise<CalledTools>,
): Promise<readonly [unknown[], unknown[]]> => {
  const causesOf = async (): Promise<unknown[]> => {
    const { events } = await calls();
    return events.filter(({ type }) => type === 'ToolCallFailed').map(({ data }) => data['cause']);
  };
  const causes = await causesOf();
  const kinds = Object.keys(TEXTS) as (keyof typeof TEXTS)[];
  const texts = kinds.map((kind) => jest.spyOn(TEXTS, kind).mockReturnValue('in another wording'));
  try {
    return [causes, await causesOf()];
  } finally {
    for (const text of texts) text.mockRestore();
  }
};
