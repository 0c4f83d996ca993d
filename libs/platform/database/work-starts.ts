import type pg from 'pg';
import { acrossWorkspaces } from './workspace.js';
import { translateDatabaseError } from './database-error.js';

/** Counts the starts of work that processes took up and did not finish. */
export interface WorkStarts {
  /**
   * Returns the number of starts since the last progress. Their processes were lost, unless one of
   * several processes has just begun the work: such starts are left out by `minAgeMs`.
   */
  read(kind: string, item: string, minAgeMs?: number): Promise<number>;
  /** Counts a start and returns the number of starts. Committed before the work begins. */
  begin(kind: string, item: string): Promise<number>;
  /**
   * Takes back the start of a process that stops in order, so that it is not counted as lost. The
   * number becomes -1 for a first start that was not counted.
   */
  release(kind: string, item: string): Promise<void>;
  /** Forgets the starts of work that made progress or was given up. */
  end(kind: string, item: string): Promise<void>;
}

const READ_SQL = `select starts from work_starts where owner = current_user and kind = $1 and item = $2
    and ($3 = 0 or started_at <= clock_timestamp() - $3 * interval '1 millisecond')`;
// Work that has ended in another way leaves a row, which a later start deletes.
const BEGIN_SQL = `with old as (delete from work_starts where owner = current_user
    and started_at < clock_timestamp() - interval '7 days' and (kind, item) <> ($1, $2))
  insert into work_starts as w (kind, item, starts, started_at) values ($1, $2, 1, clock_timestamp())
  on conflict (owner, kind, item) do update set starts = w.starts + 1, started_at = excluded.started_at
  returning starts`;
const RELEASE_SQL = `with sole as (delete from work_starts
    where owner = current_user and kind = $1 and item = $2 and starts = 1 returning 1)
  insert into work_starts as w (kind, item, starts, started_at)
  select $1, $2, -1, clock_timestamp() where not exists (select from sole)
  on conflict (owner, kind, item) do update set starts = w.starts - 1`;
const END_SQL = 'delete from work_starts where owner = current_user and kind = $1 and item = $2';

/** Returns the counts in the database of a service. */
export const createWorkStarts = (pool: pg.Pool): WorkStarts => {
  const run = async (text: string, kind: string, item: string, ...more: number[]): Promise<number> => {
    try {
      const { rows } = await acrossWorkspaces(pool).query<{ starts: number }>(text, [kind, item, ...more]);
      return rows[0]?.starts ?? 0;
    } catch (error) {
      throw translateDatabaseError(error);
    }
  };
  return {
    read: (kind, item, minAgeMs = 0) => run(READ_SQL, kind, item, minAgeMs),
    begin: (kind, item) => run(BEGIN_SQL, kind, item),
    release: async (kind, item) => void (await run(RELEASE_SQL, kind, item)),
    end: async (kind, item) => void (await run(END_SQL, kind, item)),
  };
};
