import { isPermitted, type Principal } from '@antiphon/contracts/identity';
import { CATEGORIES } from '@antiphon/contracts/log';
import { rightOfEvent } from '@antiphon/contracts/reference';
import { inWorkspace } from '@antiphon/database';
import type { Pool } from 'pg';
import { hideDeletedTexts, readDeletedParts } from '../frames/deleted-parts.js';
import type { EventPageRow } from './event-page.js';
import { toView, type LoggedEvent } from './event-view.js';

/** The part of a principal that decides which data of events it may read. */
export type EventReader = Pick<Principal, 'role' | 'scopes' | 'agentId'>;

/** Reader of the gateway itself. */
export const READS_ALL: EventReader = { role: 'admin', scopes: null, agentId: null };

const canRead = (reader: EventReader, right: ReturnType<typeof rightOfEvent>): boolean =>
  isPermitted(reader as Principal, right);

/** Returns an event without its data if the reader lacks the right of its category. */
export const withholdData = (reader: EventReader, event: LoggedEvent): LoggedEvent => {
  const right = rightOfEvent(event.category);
  return canRead(reader, right) ? event : { ...event, data: {}, withheld: right };
};

/** Returns the categories whose data the reader may read; null if it may read all. */
export const readableCategories = (reader: EventReader): readonly string[] | null => {
  const readable = CATEGORIES.filter((category) => canRead(reader, rightOfEvent(category)));
  return readable.length === CATEGORIES.length ? null : readable;
};

/** Returns rows without deleted texts, and without the data that a reader has no right to. */
export const showRows = async (
  pool: Pool,
  workspace: string,
  reader: EventReader,
  rows: readonly EventPageRow[],
): Promise<LoggedEvent[]> => {
  const db = inWorkspace(pool, workspace);
  const deleted = await readDeletedParts(
    db,
    workspace,
    rows.map((row) => row.stream_id),
  );
  return rows.map((row) => withholdData(reader, hideDeletedTexts(toView(row), deleted.get(row.stream_id))));
};
