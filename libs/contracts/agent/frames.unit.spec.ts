import { describe, expect, it } from '@jest/globals';
import {
  AFTER_LOSS,
  ATTEMPT_SPAN,
  framesOf,
  initialCursor,
  type Frame,
  type SessionEvent,
  type SessionEventOf,
} from '@antiphon/contracts/agent';

const SESSION = '11111111-1111-4111-8111-111111111111';
const FIRST = '22222222-2222-4222-8222-222222222222';
const SECOND = '33333333-3333-4333-8333-333333333333';
const CALL = '44444444-4444-4444-8444-444444444444';
const at = '2026-11-21T00:00:00.000Z';
const common = { provider: 'p', model: 'm', reservationId: CALL };

const started: SessionEvent = {
  type: 'SessionStarted',
  schemaVersion: 1,
  data: { sessionId: SESSION, sessionKey: 'k', agentId: 'main', startedAt: at },
};
const callStarted = (turnId: string, attempt: number, tryNumber = 1, step = 1): SessionEvent => ({
  type: 'ModelCallStarted',
  schemaVersion: 1,
  data: { ...common, turnId, attempt, step, tryNumber, startedAt: at },
});
const completed = (
  turnId: string,
  attempt: number,
  more: Partial<SessionEventOf<'ModelCallCompleted'>['data']> = {},
): SessionEvent => ({
  type: 'ModelCallCompleted',
  schemaVersion: 1,
  data: {
    ...common,
    turnId,
    attempt,
    step: 1,
    text: 'Hello',
    thought: '',
    frames: [
      { kind: 'text', length: 3 },
      { kind: 'text', length: 2 },
    ],
    toolCalls: [],
    finishReason: 'stop',
    usage: { inputTokens: 3, outputTokens: 2, estimated: false },
    costMicroUsd: 39,
    completedAt: at,
    ...more,
  },
});
const aborted = (turnId: string, attempt: number, text: string): SessionEvent => ({
  type: 'ModelCallAborted',
  schemaVersion: 2,
  data: {
    ...common,
    turnId,
    attempt,
    step: 1,
    reason: 'driver_lost',
    cause: { kind: 'text', text: 'm' },
    dispatched: true,
    retryable: true,
    text,
    thought: '',
    frames: text ? [{ kind: 'text', length: text.length }] : [],
    usage: null,
    abortedAt: at,
  },
});
const done = (turnId: string): SessionEvent => ({
  type: 'TurnCompleted',
  schemaVersion: 1,
  data: { turnId, completedAt: at },
});
const cancelled = (turnId: string): SessionEvent => ({
  type: 'TurnCancelled',
  schemaVersion: 1,
  data: { turnId, cancelledAt: at },
});

const framesFor = (events: SessionEvent[]): Frame[] => {
  let cursor = initialCursor;
  return events.flatMap((event) => {
    const step = framesOf(cursor, event);
    cursor = step.cursor;
    return step.frames;
  });
};
const shape = (frames: Frame[]) =>
  frames.map(({ event, offset }) =>
    [event, offset / ATTEMPT_SPAN, offset % ATTEMPT_SPAN].map((x) =>
      typeof x === 'number' ? Math.floor(x) : x,
    ),
  );

describe('framesOf', () => {
  it('returns accepted, the text in its frames, usage and done for a plain turn', () => {
    const frames = framesFor([started, callStarted(FIRST, 1), completed(FIRST, 1), done(FIRST)]);
    expect(frames.map(({ event, data }) => [event, data])).toEqual([
      ['accepted', { sessionId: SESSION, turnId: FIRST, agent: 'main' }],
      ['text', 'Hel'],
      ['text', 'lo'],
      ['usage', { input_tokens: 3, output_tokens: 2, cost_usd: 0.000039, model: 'm' }],
      ['done', { turnId: FIRST, status: 'completed' }],
    ]);
  });

  it('numbers tool frames within their attempt, and gives the next attempt a new range', () => {
    const call = { callId: CALL, providerCallId: 'x', name: 'calculator', input: { expression: '1+1' } };
    const result: SessionEvent = {
      type: 'ToolCallCompleted',
      schemaVersion: 1,
      data: { turnId: FIRST, callId: CALL, content: '2', isError: false, moduleDigest: 'd', durationMs: 1 },
    };
    const frames = framesFor([
      started,
      callStarted(FIRST, 1),
      completed(FIRST, 1, { text: '', frames: [], toolCalls: [call] }),
      result,
      callStarted(FIRST, 2, 1, 2),
      completed(FIRST, 2),
      done(FIRST),
    ]);
    expect(shape(frames)).toEqual([
      ['accepted', 1, 0],
      ['tool_use', 1, 1],
      ['usage', 1, 2],
      ['tool_result', 1, 3],
      ['text', 2, 0],
      ['text', 2, 1],
      ['usage', 2, 2],
      ['done', 2, 3],
    ]);
  });

  it('voids the text of a crashed attempt from its first offset', () => {
    const frames = framesFor([
      started,
      callStarted(FIRST, 1),
      aborted(FIRST, 1, ''),
      callStarted(FIRST, 2, 2),
    ]);
    expect(frames.at(-1)).toEqual({
      event: 'restart',
      data: { offset: ATTEMPT_SPAN + 1 },
      offset: 2 * ATTEMPT_SPAN,
      prev: ATTEMPT_SPAN,
      turnId: FIRST,
    });
  });

  it('ends a turn after a lost driver beyond every offset that it can have sent, and voids them', () => {
    const frames = framesFor([
      started,
      callStarted(FIRST, 1),
      aborted(FIRST, 1, ''),
      cancelled(FIRST),
      callStarted(SECOND, 2),
    ]);
    expect(shape(frames)).toEqual([
      ['accepted', 1, 0],
      ['restart', 1, AFTER_LOSS],
      ['done', 1, AFTER_LOSS + 1],
      ['accepted', 2, 0],
    ]);
    expect(frames[1]).toMatchObject({ data: { offset: ATTEMPT_SPAN + 1 }, prev: ATTEMPT_SPAN });
  });

  it('ends a turn directly after the frames that its driver recorded', () => {
    const frames = framesFor([started, callStarted(FIRST, 1), aborted(FIRST, 1, 'Hel'), cancelled(FIRST)]);
    expect(shape(frames).slice(1)).toEqual([
      ['text', 1, 1],
      ['done', 1, 2],
    ]);
  });

  it('returns the text that an aborted attempt streamed', () => {
    const frames = framesFor([started, callStarted(FIRST, 1), aborted(FIRST, 1, 'Hel')]);
    expect(frames.at(-1)).toMatchObject({ event: 'text', data: 'Hel', offset: ATTEMPT_SPAN + 1 });
  });

  it('gives a turn without an attempt a range of its own', () => {
    const frames = framesFor([
      started,
      callStarted(FIRST, 1),
      completed(FIRST, 1),
      done(FIRST),
      cancelled(SECOND),
    ]);
    expect(shape(frames.slice(-2))).toEqual([
      ['accepted', 2, 0],
      ['done', 2, 1],
    ]);
  });

  it('links every frame to the one before it', () => {
    const frames = framesFor([
      started,
      callStarted(FIRST, 1),
      completed(FIRST, 1),
      done(FIRST),
      callStarted(SECOND, 2),
      aborted(SECOND, 2, 'He'),
      callStarted(SECOND, 3, 2),
      completed(SECOND, 3),
      done(SECOND),
    ]);
    frames.forEach((frame, i) => expect(frame.prev).toBe(i === 0 ? 0 : frames[i - 1]?.offset));
    expect(frames.map(({ offset }) => offset)).toEqual(
      frames.map(({ offset }) => offset).sort((a, b) => a - b),
    );
  });
});

describe('a turn that waits for its agent', () => {
  const blocked = (turnId: string): SessionEvent => ({
    type: 'TurnBlocked',
    schemaVersion: 1,
    data: {
      ...{ turnId, code: 'AGENT.PAUSED', until: null, blockedAt: at },
      cause: { kind: 'agent_held', agentId: 'main', reason: 'lunch' },
    },
  });
  it('gets the reason and what to do, at an offset after the position before all frames', () => {
    const [frame] = framesFor([started, blocked(FIRST)]);
    expect(frame).toEqual({
      ...{ event: 'blocked', offset: 1, prev: 0, turnId: FIRST },
      data: {
        ...{ turnId: FIRST, code: 'AGENT.PAUSED', message: 'agent "main" is paused: lunch', until: null },
        remedy: 'resume the agent (antiphon agent resume main), or cancel the turn',
      },
    });
  });

  it('has one accepted frame when it runs, and offsets that only grow', () => {
    const frames = framesFor([
      ...[started, blocked(FIRST), blocked(SECOND), callStarted(FIRST, 1), completed(FIRST, 1)],
      ...[done(FIRST), blocked(SECOND), callStarted(SECOND, 2)],
    ]);
    const offsets = frames.map(({ offset }) => offset);
    expect(offsets).toEqual([...offsets].sort((a, b) => a - b));
    expect(new Set(offsets).size).toBe(offsets.length);
    expect(frames.map(({ event, turnId }) => [event, turnId])).toEqual([
      ['blocked', FIRST],
      ['blocked', SECOND],
      ['accepted', FIRST],
      ['text', FIRST],
      ['text', FIRST],
      ['usage', FIRST],
      ['done', FIRST],
      ['blocked', SECOND],
      ['accepted', SECOND],
    ]);
    expect(frames.slice(1).map(({ prev }) => prev)).toEqual(offsets.slice(0, -1));
  });
});
