import { v5 as uuidV5 } from 'uuid';
import { SessionForked, SessionStarted, TurnRequested } from '@antiphon/contracts/agent';
import type { SessionEventOf } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import type { RecordedEvent } from '@antiphon/event-store';
import { bug } from '@antiphon/kernel';
import type { FactIds, Said } from '@antiphon/memory-domain';

/** The events of a session that memory learns from; of all others only their version matters. */
export const REMEMBERED_TYPES = ['SessionStarted', 'SessionForked', 'TurnRequested'] as const;

/** Those of them that tell something. */
export const LEARNED_TYPES: readonly string[] = ['SessionForked', 'TurnRequested'];

/** Name of the projection's checkpoint. */
export const PROJECTION_NAME = 'memory-facts';

const SESSION_PREFIX = 'session-';
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The session of a `session-<uuid>` event stream; null for other streams of the category, such as a key's. */
export const sessionIdOf = (streamId: string): string | null => {
  const id = streamId.slice(SESSION_PREFIX.length);
  return streamId.startsWith(SESSION_PREFIX) && UUID.test(id) ? id : null;
};

/** What memory needs of a recorded event. */
export type SessionRecord = Pick<RecordedEvent, 'eventId' | 'type' | 'schemaVersion' | 'data'>;

const parse = <T>(
  schema: { safeParse(value: unknown): { success: boolean; data?: T } },
  event: SessionRecord,
): T => {
  const { type, schemaVersion, data, eventId } = upcast(event);
  const parsed = schema.safeParse({ type, schemaVersion, data });
  if (parsed.success && parsed.data !== undefined) return parsed.data;
  throw bug('MEMORY.BAD_EVENT', `the event ${eventId} of type ${type} is not what its contract says`, {
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

/** Name-based, in the namespace of the event: a rebuild gives the same ids. */
export const factIds: FactIds = (sourceEventId, n) => uuidV5(String(n), sourceEventId);
