import { epochOfCursor } from '@antiphon/contracts/log';
import type { EventView } from '@antiphon/contracts/reference';
import { severityOf } from '@antiphon/gateway-domain';
import { conflict } from '@antiphon/kernel';
import type { z } from 'zod';
import type { EventPageRow } from './event-page.js';

/** An event as clients get it. */
export type LoggedEvent = z.output<typeof EventView>;

/** Returns a row as clients get it. */
export const toView = (row: EventPageRow): LoggedEvent => ({
  position: Number(row.position),
  category: row.category,
  streamId: row.stream_id,
  streamVersion: Number(row.stream_version),
  eventId: row.event_id,
  type: row.type,
  schemaVersion: row.schema_version,
  severity: severityOf(row.type),
  data: row.data as LoggedEvent['data'],
  metadata: row.metadata as LoggedEvent['metadata'],
  recordedAt: row.recorded_at.toISOString(),
  hash: row.hash.toString('hex'),
});

/**
 * Throws if the log was restored since the cursor was issued: the same position is then another
 * event.
 */
export const checkEpoch = (cursor: string | undefined, epoch: number): void => {
  const given = cursor === undefined ? undefined : epochOfCursor(cursor);
  if (given === undefined || given === epoch) return;
  const message = `the log was restored since this cursor was issued (epoch ${given}, now ${epoch}): begin without one`;
  throw conflict('GATEWAY.EPOCH_CHANGED', message, { data: { given, epoch } });
};
