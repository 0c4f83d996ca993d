import { beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { SessionEvent } from '@antiphon/contracts/agent';
import type { SessionExport } from '@antiphon/contracts/log';
import { createMemoryEventStore } from '@antiphon/event-store/testing';
import type { JsonObject } from '@antiphon/kernel';
import { callIdOf, toolDigestOf } from '@antiphon/agent-log/derived-ids';
import { replayRecord } from './replay-record.js';

const now = '2026-11-22T12:00:00.000Z';
const sessionId = randomUUID();
const turnId = randomUUID();
const reservationId = randomUUID();
const callId = callIdOf(sessionId, 1, 0);
const input = { text: 'hi' };
const policy = { provider: 'p', model: 'm', fallback: null, maxIterations: 4 };
const call = { turnId, step: 1, provider: 'p', model: 'm', reservationId };
const answer = {
  ...{ text: '', thought: '', frames: [], finishReason: 'stop', completedAt: now },
  ...{ usage: { inputTokens: 1, outputTokens: 1, estimated: false }, costMicroUsd: null },
};

const EVENTS = [
  ['SessionStarted', { sessionId, sessionKey: 'main:a:b:c', agentId: 'main', startedAt: now }],
  ['TurnRequested', { turnId, content: 'echo hi', requestedAt: now }],
  ['ModelCallStarted', { ...call, attempt: 1, tryNumber: 1, policy, startedAt: now }],
  [
    'ModelCallCompleted',
    { ...call, ...answer, attempt: 1, toolCalls: [{ callId, providerCallId: 'c', name: 'echo', input }] },
  ],
  [
    'ToolCallRequested',
    {
      ...{ turnId, callId, attempt: 1, name: 'echo', input, digest: toolDigestOf('echo', input) },
      ...{ idempotencyKey: callId, idempotent: true },
    },
  ],
  ['ToolCallCompleted', { turnId, callId, content: 'hi', isError: false, moduleDigest: 'd', durationMs: 1 }],
  ['ModelCallStarted', { ...call, step: 2, attempt: 2, tryNumber: 1, startedAt: now }],
  ['ModelCallCompleted', { ...call, ...answer, step: 2, attempt: 2, text: 'hi', toolCalls: [] }],
  ['TurnCompleted', { turnId, completedAt: now }],
] as unknown as readonly (readonly [SessionEvent['type'], JsonObject])[];

/** Events of a session as the log returns them, with hashes. */
const recordOf = async (events: typeof EVENTS): Promise<SessionExport> => {
  const store = createMemoryEventStore({ clock: { now: () => 0 } });
  const streamId = `session-${sessionId}`;
  const added = events.map(([type, data]) => ({
    ...{ eventId: randomUUID(), type, schemaVersion: 1, data },
    metadata: { correlationId: 'c', service: 'agent' },
  }));
  await store.append({ workspace: 'default', streams: [{ streamId, expectedVersion: 0, events: added }] });
  const stored = await store.readStream('default', streamId);
  const head = { version: stored.length, hash: stored.at(-1)?.hash ?? '' };
  const header = { kind: 'antiphon.session', format: 1, workspace: 'default', sessionId, head } as const;
  return { ...header, events: stored as unknown as SessionExport['events'] };
};

let record: SessionExport;
beforeAll(async () => {
  record = await recordOf(EVENTS);
});
/** Returns the record with another payload in one row, and the row's old hash. */
const tampered = (version: number, data: JsonObject): SessionExport => ({
  ...record,
  events: record.events.map((event) =>
    event.streamVersion === version
      ? { ...event, data: { ...event.data, ...data } as typeof event.data }
      : event,
  ),
});

describe('replayRecord', () => {
  it('reproduces the hash of a failure whose text was reworded since', async () => {
    const [start, request, began, answered] = EVENTS;
    const limited = { ...began?.[1], policy: { ...policy, maxIterations: 1 } };
    const cause = { kind: 'max_iterations', limit: 1 };
    const failed = { turnId, code: 'TURN.MAX_ITERATIONS', message: 'too many calls', cause, failedAt: now };
    const events = [start, request, ['ModelCallStarted', limited], answered, ['TurnFailed', failed]];
    const reworded = await recordOf(events as unknown as typeof EVENTS);
    expect(replayRecord(reworded, { limit: 1 })).toMatchObject({
      ...{ ok: true, events: 5, head: reworded.head.hash },
    });
  });

  it('reproduces the hash of every event from the inputs', () =>
    expect(replayRecord(record, { limit: 1 })).toMatchObject({
      ok: true,
      ...{ events: 9, turns: 1, inputs: 5, decisions: 4, providerCalls: 0, toolCalls: 0 },
      head: record.head.hash,
    }));

  it('reports an answer that was changed in its row', () => {
    const { divergences } = replayRecord(tampered(8, { text: 'ho', frames: [] }), { limit: 1 });
    expect(divergences).toEqual([
      expect.objectContaining({ why: 'hash', streamVersion: 8, eventId: record.events[7]?.eventId }),
    ]);
    expect(divergences[0]?.produced?.hash).not.toBe(divergences[0]?.recorded.hash);
  });

  it('reports a decision that does not follow from the inputs, with valid hashes', async () => {
    const changed = await recordOf(
      EVENTS.with(4, ['ToolCallRequested', { ...EVENTS[4]?.[1], digest: 'another' } as JsonObject]),
    );
    const [first] = replayRecord(changed, { limit: 1 }).divergences;
    expect(first).toMatchObject({ why: 'content', streamVersion: 5, turnId });
    expect(first?.recorded.data['digest']).toBe('another');
    expect(first?.produced?.data['digest']).toBe(toolDigestOf('echo', input));
  });

  it('reports the first event that another rule does not produce', () => {
    const [first] = replayRecord(record, { limit: 1, rules: { maxIterations: 1 } }).divergences;
    expect(first).toMatchObject({
      streamVersion: 5,
      recorded: { type: 'ToolCallRequested' },
      produced: { type: 'TurnFailed', data: { code: 'TURN.MAX_ITERATIONS' } },
    });
  });

  it('compares one turn if one is given', () => {
    const only = { limit: 1, turnId };
    expect(replayRecord(record, only)).toMatchObject({ ok: true, inputs: 4, decisions: 4 });
    expect(replayRecord(tampered(1, { agentId: 'x' }), only).ok).toBe(true);
    expect(() => replayRecord(record, { limit: 1, turnId: randomUUID() })).toThrow('has no turn');
  });

  it('rejects a truncated record, and one of a newer version', async () => {
    const cut = { ...record, events: record.events.slice(0, -1) };
    expect(() => replayRecord(cut, { limit: 1 })).toThrow('export it again');
    const later = await recordOf(EVENTS.with(8, ['TurnBlessed' as never, { turnId }]));
    expect(() => replayRecord(later, { limit: 1 })).toThrow('does not know event 9');
  });
});
