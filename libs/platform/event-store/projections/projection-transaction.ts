import type pg from 'pg';
import { borrowClient, isDatabaseError, translateDatabaseError } from '@antiphon/database';
import { bug } from '@antiphon/kernel';
import { sendInOneWrite } from '@antiphon/unsafe';
import { beginWithMove, type Move } from './projection-checkpoint.js';

/** `elsewhere`: another process was faster, and nothing was done. */
export type Moved<T> = { readonly state: 'moved'; readonly result: T } | { readonly state: 'elsewhere' };

export interface MoveOptions {
  /** Do not begin the work before the move is known to have succeeded. */
  readonly waitForMove: boolean;
}

const begin = async (client: pg.PoolClient, move: Move): Promise<boolean> => {
  // A message of several statements is answered with a result of each.
  const results = (await client.query(beginWithMove(move))) as unknown as pg.QueryResult[];
  return results.at(-1)?.rowCount === 1;
};

const commit = async (client: pg.PoolClient): Promise<void> => {
  const { command } = await client.query('commit');
  // The server answers the commit of a transaction that has failed with a rollback, and with no error.
  if (command !== 'COMMIT')
    throw bug('LOG.PROJECTION_UNDONE', 'a projection went on over a statement of its own that had failed');
};

const attempt = async <T>(
  client: pg.PoolClient,
  move: Move,
  work: (client: pg.PoolClient) => Promise<T>,
  { waitForMove }: MoveOptions,
): Promise<Moved<T>> => {
  const [moved, done] = await sendInOneWrite(client, () => {
    const moving = begin(client, move);
    const working = waitForMove ? moving.then((own) => (own ? work(client) : null)) : work(client);
    return Promise.allSettled([moving, working]);
  });
  if (moved.status === 'rejected') throw moved.reason;
  // Work that was done beside another process's says nothing, and its error neither: it may have done it twice.
  if (!moved.value) {
    await client.query('rollback');
    return { state: 'elsewhere' };
  }
  if (done.status === 'rejected') throw done.reason;
  await commit(client);
  return { state: 'moved', result: done.value as T };
};

/**
 * Moves a checkpoint and does the work of it in one transaction, on a pool of `createPipelinedPool`. The work's first
 * statements leave with the move, before its success is known; when there is none, they are rolled back.
 * What `pg` throws comes out as an AppError, what `work` throws as it is.
 */
export const inMove = async <T>(
  pool: pg.Pool,
  move: Move,
  work: (client: pg.PoolClient) => Promise<T>,
  options: MoveOptions,
): Promise<Moved<T>> => {
  const { client, release } = await borrowClient(pool).catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
  let broken: Error | undefined;
  try {
    return await attempt(client, move, work, options);
  } catch (error) {
    await client.query('rollback').catch((failure: Error) => {
      broken = failure;
    });
    throw isDatabaseError(error) ? translateDatabaseError(error) : error;
  } finally {
    release(broken);
  }
};
