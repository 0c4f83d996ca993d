import { textCause } from '@antiphon/contracts/causes';
import { randomUUID } from 'node:crypto';
import { framesOf, initialCursor } from '@antiphon/contracts/agent';
import type { Frame, SessionEvent, SessionEventOf, SpeechNotification } from '@antiphon/contracts/agent';

const at = '2026-11-22T00:00:00.000Z';
const schemaVersion = 1;

/**
 * Builds the events of one session as its agent would append them. Each method returns the events
 * that it added.
 */
export interface SessionScript {
  readonly sessionId: string;
  readonly events: readonly SessionEvent[];
  /** Returns all frames of the events. */
  frames(): Frame[];
  request(content?: string): SessionEvent[];
  /** Starts the next attempt of the open turn: a retry after an abort, else a step. */
  begin(): SessionEvent[];
  answer(...pieces: string[]): SessionEvent[];
  asks(...tools: string[]): SessionEvent[];
  /** Returns an answer with a text and a tool call. */
  saysAndAsks(text: string, tool: string): SessionEvent[];
  /** Returns the notification of the first text of the open call. */
  speech(): SpeechNotification;
  abort(reason: SessionEventOf<'ModelCallAborted'>['data']['reason'], ...pieces: string[]): SessionEvent[];
  complete(): SessionEvent[];
  cancel(): SessionEvent[];
  /** Ends the turn with an error. */
  fail(code: string): SessionEvent[];
  /** Adds a whole turn with one answer. */
  turn(...pieces: string[]): SessionEvent[];
}

export const framesFor = (events: readonly SessionEvent[]): Frame[] => {
  let cursor = initialCursor;
  return events.flatMap((event) => {
    const step = framesOf(cursor, event);
    cursor = step.cursor;
    return [...step.frames];
  });
};

const streamed = (pieces: readonly string[]) => ({
  text: pieces.join(''),
  thought: '',
  frames: pieces.map((piece) => ({ kind: 'text' as const, length: piece.length })),
});

export const createSessionScript = (sessionId: string = randomUUID()): SessionScript => {
  const events: SessionEvent[] = [];
  let turnId = '';
  let [attempt, step, tryNumber] = [0, 0, 0];

  const add = (...added: SessionEvent[]): SessionEvent[] => {
    events.push(...added);
    return added;
  };
  const call = () => ({ turnId, attempt, step, provider: 'p', model: 'm', reservationId: randomUUID() });
  const paid = { costMicroUsd: null, completedAt: at };
  const usage = { inputTokens: 1, outputTokens: 1, estimated: false };
  const complete = (pieces: readonly string[], tools: readonly string[]) => {
    const toolCalls = tools.map((name) => ({ callId: randomUUID(), providerCallId: name, name, input: {} }));
    const spoken = pieces.length > 0 ? { firstTextAt: at } : {};
    const data = { ...call(), ...streamed(pieces), ...spoken, toolCalls, usage, ...paid };
    const finishReason = tools.length > 0 ? ('tool_calls' as const) : ('stop' as const);
    tryNumber = 0;
    return add({ type: 'ModelCallCompleted', schemaVersion, data: { ...data, finishReason } });
  };

  const script: SessionScript = {
    sessionId,
    events,
    frames: () => framesFor(events),
    request: (content = 'hi') => {
      turnId = randomUUID();
      [step, tryNumber] = [0, 0];
      return add({ type: 'TurnRequested', schemaVersion, data: { turnId, content, requestedAt: at } });
    },
    begin: () => {
      attempt++;
      if (tryNumber === 0) step++;
      tryNumber++;
      return add({ type: 'ModelCallStarted', schemaVersion, data: { ...call(), tryNumber, startedAt: at } });
    },
    answer: (...pieces) => complete(pieces, []),
    asks: (...tools) => complete([], tools),
    saysAndAsks: (text, tool) => complete([text], [tool]),
    speech: () => ({ workspace: 'default', agentId: 'main', sessionId, turnId, attempt, at }),
    abort: (reason, ...pieces) => {
      const why = { reason, cause: textCause('m'), dispatched: true, retryable: true, usage: null };
      const data = { ...call(), ...why, ...streamed(pieces), abortedAt: at };
      return add({ type: 'ModelCallAborted', schemaVersion: 2, data });
    },
    complete: () => add({ type: 'TurnCompleted', schemaVersion, data: { turnId, completedAt: at } }),
    cancel: () => {
      // A turn that ends without an attempt gets an attempt number of its own.
      if (step === 0) attempt++;
      return add({ type: 'TurnCancelled', schemaVersion, data: { turnId, cancelledAt: at } });
    },
    fail: (code) => {
      if (step === 0) attempt++;
      const data = { turnId, code, cause: textCause('m'), failedAt: at };
      return add({ type: 'TurnFailed', schemaVersion: 2, data });
    },
    turn: (...pieces) => [
      ...script.request(),
      ...script.begin(),
      ...script.answer(...pieces),
      ...script.complete(),
    ],
  };
  const started = { sessionId, sessionKey: 'k', agentId: 'main', startedAt: at };
  add({ type: 'SessionStarted', schemaVersion, data: started });
  return script;
};
