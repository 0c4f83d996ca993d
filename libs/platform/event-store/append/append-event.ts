import type pg from 'pg';
import { createAppendResult, type AppendOutcome } from './append-outcome.js';
import type { PreparedAppend, PreparedEvent } from './prepare-append.js';

const PARAMETERS = '$2, $3, $4, $5, $6, $7, $8, $9, $10, $11';

/** One event on a stream that exists, and nothing else in its request than a fence. */
interface SingleEvent {
  readonly streamId: string;
  readonly expected: number;
  readonly event: PreparedEvent;
}

const hasMoreThanEvents = ({
  fence,
  idempotency,
  guards,
  blobs,
  extension,
}: PreparedAppend['request']): boolean =>
  idempotency !== undefined ||
  extension !== undefined ||
  fence?.acquire !== undefined ||
  (guards?.length ?? 0) > 0 ||
  (blobs?.length ?? 0) > 0;

/** Returns the only event of a batch that `antiphon_append_event` can append; null for any other. */
const singleEventOf = (batch: readonly PreparedAppend[]): SingleEvent | null => {
  const [append] = batch;
  if (batch.length !== 1 || !append || append.events !== 1) return null;
  if (hasMoreThanEvents(append.request)) return null;
  const [stream] = append.streams;
  const [event] = stream?.events ?? [];
  // A stream without an event has no head yet, and `any` (null) is no version to compare.
  if (!stream?.expectedVersion || !event) return null;
  return { streamId: stream.streamId, expected: stream.expectedVersion, event };
};

/**
 * Appends a batch of one event in one call of `antiphon_append_event`. Returns its outcome. Returns
 * null if the batch has anything else or was refused; then nothing is written, and
 * `antiphon_append` has the reason. Rejects with the error of `pg`; an event id that is in the log
 * is a unique violation. `lockTimeoutMs` is the maximum wait for one lock, ms.
 */
export const appendSingleEvent = async (
  client: pg.Pool | pg.ClientBase,
  batch: readonly PreparedAppend[],
  lockTimeoutMs: number | undefined,
): Promise<AppendOutcome | null> => {
  const single = singleEventOf(batch);
  if (!single) return null;
  const { streamId, expected, event } = single;
  const { workspace, fence } = (batch[0] as PreparedAppend).request;
  const isTimed = lockTimeoutMs !== undefined;
  // The lock timeout of this statement alone.
  const first = isTimed
    ? `case when set_config('lock_timeout', $12::text, true) is null then null else $1::text end`
    : '$1';
  const { rows } = await client.query<{ readonly position: string | null }>({
    name: isTimed ? 'antiphon_append_event_timed' : 'antiphon_append_event',
    text: `select antiphon_append_event(${first}, ${PARAMETERS}) as position`,
    values: [
      ...[workspace, streamId, expected, event.eventId, event.type, event.schemaVersion, event.data],
      ...[event.metadata, fence ? (fence.workspace ?? workspace) : null, fence?.lease, fence?.epoch],
      ...(isTimed ? [String(lockTimeoutMs)] : []),
    ],
  });
  const position = rows[0]?.position;
  if (position === null || position === undefined) return null;
  const at = Number(position);
  return { ok: true, result: createAppendResult('appended', [expected + 1], at, at) };
};
