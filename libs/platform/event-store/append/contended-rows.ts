import type pg from 'pg';
import { inWorkspace } from '@antiphon/database';
import type { PreparedAppend } from './prepare-append.js';

/** Tables whose rows an append locks, with the column that names the row. */
const NAME_COLUMNS: Readonly<Record<string, string>> = { stream_heads: 'stream_id', leases: 'name' };

interface LockedRow {
  readonly workspace: string;
  readonly name: string;
}

/** PostgreSQL's context of a wait for a row: `while locking tuple (0,5) in relation "leases"`. */
const WAITED_FOR = /while \w+ (?:index )?tuple (\(\d+,\d+\)) in relation "(\w+)"/;

const contextOf = (error: unknown): string => {
  const { where } = error as { readonly where?: unknown };
  return typeof where === 'string' ? where : '';
};

/** Returns whether a statement ended because it waited too long for a lock. */
export const isLockTimeout = (error: unknown): boolean => (error as { code?: unknown }).code === '55P03';

/**
 * Returns whether that lock was a row's, not the one of the end of the log. The function takes that
 * one in an assignment.
 */
export const isRowLock = (error: unknown): boolean => !/ at assignment/.test(contextOf(error));

/** Returns whether a statement ended because it waited too long for a lock of its extensions. */
export const isExtensionLock = (error: unknown): boolean =>
  isLockTimeout(error) &&
  /function antiphon_append_extended\(/.test(contextOf(error)) &&
  !/function antiphon_append\(/.test(contextOf(error));

/** Returns the requests that need the row whose lock was waited for; none if it is not found. */
export const findContended = async (
  pool: pg.Pool,
  batch: readonly PreparedAppend[],
  error: unknown,
): Promise<ReadonlySet<PreparedAppend>> => {
  const [, place, relation = ''] = WAITED_FOR.exec(contextOf(error)) ?? [];
  const column = NAME_COLUMNS[relation];
  if (place === undefined || column === undefined) return new Set();
  const sql = `select workspace, ${column} as name from ${relation} where ctid = $1::tid`;
  const found = await Promise.all(
    [
      ...new Set(batch.flatMap(({ request }) => [request.workspace, request.fence?.workspace ?? []].flat())),
    ].map((workspace) =>
      // Without an answer the requests are written one by one.
      inWorkspace(pool, workspace)
        .query<LockedRow>(sql, [place])
        .catch(() => null),
    ),
  );
  const row = found.flatMap((result) => result?.rows ?? [])[0];
  return new Set(
    batch.filter(
      ({ request, streams }) =>
        row !== undefined &&
        (relation === 'leases'
          ? request.fence?.lease === row.name &&
            (request.fence.workspace ?? request.workspace) === row.workspace
          : request.workspace === row.workspace && streams.some(({ streamId }) => streamId === row.name)),
    ),
  );
};
