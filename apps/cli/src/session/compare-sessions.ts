import { upcast } from '@antiphon/contracts/events';
import { textOf } from '@antiphon/contracts/causes';
import type { SessionEvent, SessionEventOf } from '@antiphon/contracts/agent';
import type { SessionExport } from '@antiphon/contracts/log';

/** One turn: its message, answer, tool calls and usage. */
export interface TurnSummary {
  readonly turnId: string;
  readonly content: string;
  /** `open` while it has not ended. */
  readonly status: 'completed' | 'failed' | 'cancelled' | 'open';
  readonly error: string | null;
  readonly models: readonly string[];
  readonly text: string;
  readonly tools: readonly {
    readonly name: string;
    readonly input: unknown;
    readonly outcome: string;
    readonly content: string;
  }[];
  readonly usage: {
    readonly inputTokens: number;
    readonly outputTokens: number;
    readonly costMicroUsd: number;
  };
}

export const COMPARED = ['content', 'status', 'error', 'models', 'text', 'tools', 'usage'] as const;
export type Compared = (typeof COMPARED)[number];

export interface TurnPair {
  readonly a: TurnSummary | null;
  readonly b: TurnSummary | null;
  /** Fields that differ; empty when the turns are equal. */
  readonly differs: readonly Compared[];
}

export interface SessionComparison {
  readonly a: string;
  readonly b: string;
  readonly same: boolean;
  readonly turns: readonly TurnPair[];
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type Summary = Mutable<Omit<TurnSummary, 'models' | 'tools' | 'usage'>> & {
  models: string[];
  tools: (Mutable<TurnSummary['tools'][number]> & { readonly callId: string })[];
  usage: Mutable<TurnSummary['usage']>;
};

const createSummary = ({ turnId, content }: SessionEventOf<'TurnRequested'>['data']): Summary => ({
  ...{ turnId, content, status: 'open', error: null, models: [], text: '', tools: [] },
  usage: { inputTokens: 0, outputTokens: 0, costMicroUsd: 0 },
});

const addModelCall = (turn: Summary, data: SessionEventOf<'ModelCallCompleted'>['data']): void => {
  turn.text += data.text;
  turn.models.push(`${data.provider}/${data.model}`);
  turn.usage.inputTokens += data.usage.inputTokens;
  turn.usage.outputTokens += data.usage.outputTokens;
  turn.usage.costMicroUsd += data.costMicroUsd ?? 0;
  for (const { callId, name, input } of data.toolCalls)
    turn.tools.push({ callId, name, input, outcome: 'none', content: '' });
};

const endToolCall = (turn: Summary, callId: string, outcome: string, content: string): void => {
  const call = turn.tools.find((tool) => tool.callId === callId);
  if (call) Object.assign(call, { outcome, content });
};

const applyEvent = (turn: Summary, event: SessionEvent): void => {
  switch (event.type) {
    case 'ModelCallCompleted':
      return addModelCall(turn, event.data);
    case 'ToolCallCompleted':
      return endToolCall(
        turn,
        event.data.callId,
        event.data.isError ? 'error' : 'completed',
        event.data.content,
      );
    case 'ToolCallFailed':
      return endToolCall(turn, event.data.callId, `failed: ${event.data.code}`, textOf(event.data.cause));
    case 'ToolCallUnknown':
      return endToolCall(turn, event.data.callId, 'unknown', textOf(event.data.cause));
    case 'TurnCompleted':
      return void (turn.status = 'completed');
    case 'TurnCancelled':
      return void (turn.status = 'cancelled');
    case 'TurnFailed':
      return void Object.assign(turn, {
        status: 'failed',
        error: `${event.data.code}: ${textOf(event.data.cause)}`,
      });
    default:
      return;
  }
};

/** Returns the turns of a session in the order of their requests. */
const turnsOf = ({ events }: SessionExport): readonly TurnSummary[] => {
  const turns = new Map<string, Summary>();
  for (const recorded of events) {
    const event = upcast(recorded) as unknown as SessionEvent;
    if (event.type === 'TurnRequested') turns.set(event.data.turnId, createSummary(event.data));
    const turn = 'turnId' in event.data ? turns.get(event.data.turnId) : undefined;
    if (turn) applyEvent(turn, event);
  }
  return [...turns.values()].map((turn) => ({
    ...turn,
    tools: turn.tools.map(({ callId: _, ...tool }) => tool),
  }));
};

const differences = (a: TurnSummary | null, b: TurnSummary | null): readonly Compared[] =>
  a === null || b === null
    ? COMPARED
    : COMPARED.filter((name) => JSON.stringify(a[name]) !== JSON.stringify(b[name]));

interface Remake {
  readonly turnId: string;
  readonly of: string;
}

const readRemakes = (record: SessionExport, of: SessionExport): readonly Remake[] => {
  const forked = record.events.find(({ type }) => type === 'SessionForked')?.data as
    { origin: { sessionId: string }; remakes?: readonly Remake[] } | undefined;
  return forked?.origin.sessionId === of.sessionId ? (forked.remakes ?? []) : [];
};

/** Counts the turns before a fork's cut: both sessions contain them. */
const countSharedTurns = (record: SessionExport, of: SessionExport): number => {
  const forked = record.events.find(({ type }) => type === 'SessionForked')?.data as
    { origin: { sessionId: string; version: number } } | undefined;
  if (forked?.origin.sessionId !== of.sessionId) return 0;
  const { version } = forked.origin;
  return of.events.filter(({ type, streamVersion }) => type === 'TurnRequested' && streamVersion <= version)
    .length;
};

/**
 * Pairs the turns of two sessions and compares them. A turn of a what-if is paired with the turn
 * that it repeats, and all others are omitted. Turns of a fork are paired with the origin's after
 * the cut. All other sessions are paired by the order of their turns.
 */
export const compareSessions = (
  a: SessionExport,
  b: SessionExport,
  remakes: readonly Remake[] = readRemakes(b, a),
): SessionComparison => {
  const [as, bs] = [turnsOf(a), turnsOf(b)];
  const shared = countSharedTurns(b, a) - countSharedTurns(a, b);
  const left = as.slice(Math.max(0, shared));
  const right = bs.slice(Math.max(0, -shared));
  const pairs: (readonly [TurnSummary | null, TurnSummary | null])[] =
    remakes.length > 0
      ? remakes.map(({ turnId, of }) => [
          as.find((turn) => turn.turnId === of) ?? null,
          bs.find((turn) => turn.turnId === turnId) ?? null,
        ])
      : Array.from({ length: Math.max(left.length, right.length) }, (_, index) => [
          left[index] ?? null,
          right[index] ?? null,
        ]);
  const turns = pairs.map(([first, second]) => ({
    a: first,
    b: second,
    differs: differences(first, second),
  }));
  return { a: a.sessionId, b: b.sessionId, same: turns.every(({ differs }) => differs.length === 0), turns };
};
