import { upcast } from '@antiphon/contracts/events';
import type { Principal } from '@antiphon/contracts/identity';
import { workspaceStream } from '@antiphon/contracts/keys';
import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import { forbidden, type JsonObject } from '@antiphon/kernel';
import type { Pool } from 'pg';
import type { z } from 'zod';
import { readEventPage } from '../events/read-event-page.js';
import { READS_ALL } from '../events/shown-events.js';
import type { RecordFact } from '../identity/identity-log.js';

export interface RecordsQuery<Schema extends RecordSchema> {
  readonly type: RecordFact;
  readonly schema: Schema;
  readonly limit: number;
  /** Only records up to this position of the log. */
  readonly at: number | undefined;
}

type RecordSchema = z.ZodType<{ readonly data: object }>;

interface WorkspaceRecord<Data> {
  readonly data: Data;
  readonly recordedAt: string;
  readonly position: number;
}

interface RecordPage<Data> {
  /** Newest first; none in a workspace other than `default`. */
  readonly records: WorkspaceRecord<Data>[];
  readonly position: number;
  readonly head: number;
}

/** Reads records that operators sent: of audits or backups. Throws `LOG.POSITION_AHEAD`. */
export const readRecords = async <Schema extends RecordSchema>(
  pool: Pool,
  workspace: string,
  { type, schema, limit, at }: RecordsQuery<Schema>,
): Promise<RecordPage<z.output<Schema>['data']>> => {
  const query = { stream: workspaceStream(workspace), type, order: 'desc', limit, at } as const;
  const { events, position, head } = await readEventPage(pool, workspace, query, READS_ALL);
  if (workspace !== DEFAULT_WORKSPACE) return { records: [], position, head };
  const records = events.map((event) => ({
    data: schema.parse(upcast({ ...event, data: event.data as JsonObject })).data,
    recordedAt: event.recordedAt,
    position: event.position,
  }));
  return { records, position, head };
};

/** Throws unless the principal is of the workspace `default`, whose operators see all workspaces. */
export const requireDefaultWorkspace = ({ workspace }: Principal, code: string, reason: string): void => {
  if (workspace === DEFAULT_WORKSPACE) return;
  throw forbidden(code, `${reason}. What to do: record it with a key of the workspace ${DEFAULT_WORKSPACE}`);
};
