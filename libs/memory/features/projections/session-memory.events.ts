import { v5 as uuidV5 } from 'uuid';
import { SessionForked, SessionStarted, TurnRequested } from '@antiphon/contracts/agent';
import type { SessionEventOf } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import type { RecordedEvent } from '@antiphon/event-store';
import { bug } from '@antiphon/kernel';
import type { FactIds, Said } from '@antiphon/memory-domain';
import { createHash } from 'node:crypto';
import type { Fact } from '@antiphon/contracts/memory';

/** Session events that memory reads; of all others it only records the version. */
export const REMEMBERED_TYPES = ['SessionStarted', 'SessionForked', 'TurnRequested'] as const;

/** Session events that may contain facts. */
export const LEARNED_TYPES: readonly string[] = ['SessionForked', 'TurnRequested'];

/** Name of the projection's checkpoint. */
export const PROJECTION_NAME = 'memory-facts';

const SESSION_PREFIX = 'session-';
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Returns the session of a `session-<uuid>` stream, null for other streams of the category. */
export const sessionIdOf = (streamId: string): string | null => {
  const id = streamId.slice(SESSION_PREFIX.length);
  return streamId.startsWith(SESSION_PREFIX) && UUID.test(id) ? id : null;
};

/** Fields of a recorded event that memory reads. */
export type SessionRecord = Pick<RecordedEvent, 'eventId' | 'type' | 'schemaVersion' | 'data'>;

const parse = <T>(
  schema: { safeParse(value: unknown): { success: boolean; data?: T } },
  event: SessionRecord,
): T => {
  const { type, schemaVersion, data, eventId } = upcast(event);
  const parsed = schema.safeParse({ type, schemaVersion, data });
  if (parsed.success && parsed.data !== undefined) return parsed.data;
  throw bug('MEMORY.BAD_EVENT', `the event ${eventId} of type ${type} does not match its contract`, {
    data: { eventId },
  });
};

export const toStarted = (event: SessionRecord): SessionEventOf<'SessionStarted'>['data'] =>
  parse(SessionStarted, event).data;

export const toSaid = (event: SessionRecord): Said => {
  if (event.type === 'SessionForked') {
    const { facts, forkedAt } = parse(SessionForked, event).data;
    return { eventId: event.eventId, text: '', at: forkedAt, inherited: facts };
  }
  const { content, requestedAt } = parse(TurnRequested, event).data;
  return { eventId: event.eventId, text: content, at: requestedAt };
};

/** Makes name-based ids in the namespace of the event: a rebuild gives the same ids. */
export const factIds: FactIds = (sourceEventId, n) => uuidV5(String(n), sourceEventId);

/** Returns the hash of a session key, which indexes use. */
export const keyHashOf = (sessionKey: string): Buffer => createHash('sha256').update(sessionKey).digest();

export interface FactRow {
  readonly fact_id: string;
  readonly subject: string;
  readonly predicate: string;
  readonly object: string;
  readonly confidence: number;
  readonly learned_at: Date;
  readonly superseded_at: Date | null;
  readonly source_event_id: string;
}

export const FACT_COLUMNS =
  'fact_id, subject, predicate, object, confidence, learned_at, superseded_at, source_event_id';

export const toFact = (row: FactRow): Fact => ({
  factId: row.fact_id,
  subject: row.subject,
  predicate: row.predicate,
  object: row.object,
  confidence: row.confidence,
  learnedAt: row.learned_at.toISOString(),
  supersededAt: row.superseded_at?.toISOString() ?? null,
  sourceEventId: row.source_event_id,
});

/** A fact with the position where it was learned. */
export interface PlacedFact {
  readonly fact: Fact;
  readonly position: number;
  readonly ordinal: number;
}
