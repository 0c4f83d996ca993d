import { randomUUID } from 'node:crypto';
import type { EventStore, NewEvent } from '@antiphon/event-store';

/** Events of one turn of `growLog`. */
const EVENTS_A_TURN = 7;
/** Turns of each session but the long one. */
const TURNS_A_SESSION = 10;
/** Limits of one append. */
const MAX_EVENTS = 980;
const MAX_STREAMS = 12;
const WRITERS = 4;

const DIGEST = 'a'.repeat(64);
const AT = '2026-11-22T10:00:00.000Z';
const MODEL = { provider: 'scripted', model: 'scripted-1' };

const fact = (type: string, data: object): NewEvent => ({
  ...{ eventId: randomUUID(), type, schemaVersion: 1, data: data as NewEvent['data'] },
  metadata: { correlationId: 'grow-log', service: 'agent' },
});

const startOf = (sessionId: string): NewEvent =>
  fact('SessionStarted', {
    ...{ sessionId, sessionKey: `main:load:a:${sessionId}`, agentId: 'main', startedAt: AT },
  });

/** Returns the events of a turn with one tool call, as the agent service appends them. */
const turnOf = (sessionId: string, index: number): NewEvent[] => {
  const [turnId, callId] = [randomUUID(), randomUUID()];
  const call = { turnId, attempt: index + 1 };
  const completed = (step: number, text: string, toolCalls: object[]): NewEvent =>
    fact('ModelCallCompleted', {
      ...{ ...call, ...MODEL, step, reservationId: randomUUID(), text, thought: '', frames: [], toolCalls },
      ...{ finishReason: toolCalls.length > 0 ? 'tool_use' : 'stop', costMicroUsd: 10, completedAt: AT },
      usage: { inputTokens: 40, outputTokens: 20, estimated: false },
    });
  const tool = {
    callId,
    providerCallId: `call_${index}`,
    name: 'calculator',
    input: { expression: '19+23' },
  };
  const text = `The sum of turn ${index} is 42. `.repeat(8);
  return [
    fact('TurnRequested', { turnId, content: `question ${index} of ${sessionId}`, requestedAt: AT }),
    fact('ModelCallStarted', {
      ...{ ...call, ...MODEL, step: 1, tryNumber: 1, reservationId: randomUUID(), startedAt: AT },
    }),
    completed(1, '', [tool]),
    fact('ToolCallRequested', {
      ...{ ...call, callId, name: tool.name, input: tool.input, digest: DIGEST, idempotencyKey: callId },
      idempotent: true,
    }),
    fact('ToolCallCompleted', {
      ...{ turnId, callId, content: '42', isError: false, moduleDigest: DIGEST, durationMs: 3 },
    }),
    completed(2, text, []),
    fact('TurnCompleted', { turnId, completedAt: AT }),
  ];
};

type Appends = Parameters<EventStore['append']>[0]['streams'];

const streamOf = (sessionId: string, events: NewEvent[]): Appends[number] => ({
  ...{ streamId: `session-${sessionId}`, expectedVersion: 'any' as const, events },
});

/** Yields the appends of one long session. */
function* longSession(sessionId: string, turns: number): Generator<Appends> {
  let events = [startOf(sessionId)];
  for (let index = 0; index < turns; index++) {
    events.push(...turnOf(sessionId, index));
    if (events.length + EVENTS_A_TURN <= MAX_EVENTS) continue;
    yield [streamOf(sessionId, events)];
    events = [];
  }
  if (events.length > 0) yield [streamOf(sessionId, events)];
}

/** Yields appends of short sessions with this number of events, at least. */
function* shortSessions(events: number): Generator<Appends> {
  for (let count = 0; count < events;) {
    const streams: Appends[number][] = [];
    for (let index = 0; index < MAX_STREAMS; index++) {
      const sessionId = randomUUID();
      const turns = Array.from({ length: TURNS_A_SESSION }, (_, turn) => turnOf(sessionId, turn)).flat();
      streams.push(streamOf(sessionId, [startOf(sessionId), ...turns]));
    }
    count += MAX_STREAMS * (TURNS_A_SESSION * EVENTS_A_TURN + 1);
    yield streams;
  }
}

const drain = async (log: Pick<EventStore, 'append'>, workspace: string, appends: Generator<Appends>) => {
  for (const streams of appends) await log.append({ workspace, streams });
};

export interface GrowLog {
  /** Turns of the long session. */
  readonly turns: number;
  /** Minimum number of events of the log, with those of the long session. */
  readonly events: number;
  /** Default: `default`. */
  readonly workspace?: string;
}

/**
 * Appends a session of many turns, and short sessions until the log has its size. All are sessions
 * of the agent `main` whose turns have ended. Returns the id of the long session. The log must be
 * opened with the role of the agent service.
 */
export const growLog = async (
  log: Pick<EventStore, 'append'>,
  { turns, events, workspace = 'default' }: GrowLog,
): Promise<string> => {
  const sessionId = randomUUID();
  const short = shortSessions(Math.max(0, events - turns * EVENTS_A_TURN - 1));
  await Promise.all([
    drain(log, workspace, longSession(sessionId, turns)),
    ...Array.from({ length: WRITERS - 1 }, () => drain(log, workspace, short)),
  ]);
  return sessionId;
};
