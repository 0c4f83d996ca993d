import { type AppError, conflict, isAppError, rejected, retry } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import pg from 'pg';
import { isDatabaseError, translateDatabaseError } from '../database-error.js';
import {
  RESTORE_LOCK,
  isUnfinished,
  readRestores,
  readUnfinishedRestore,
  restoreRuns,
  unfinishedRestore,
} from './restore-record.js';

export interface HoldOptions {
  readonly url: string;
  /** Name in pg_stat_activity, such as `antiphon-agent`. */
  readonly applicationName: string;
  readonly logger: Logger;
  /** Maximum time to wait for a running restore and for an unreachable database, ms; default 30 s. */
  readonly withinMs?: number;
}

/** A process's permission to use the log. No restore can begin while one is held. */
export interface DatabaseHold {
  /** Resolves when a restore has replaced the log: the process must end, its state is outdated. */
  readonly lost: Promise<AppError>;
  release(): Promise<void>;
}

const RETRY_MS = 500;
const MAX_RETRY_MS = 5_000;

/** Takes the lock shared, for the life of the connection. Throws `DATABASE.RESTORE_RUNS`. */
export const shareRestoreLock = async (client: pg.ClientBase): Promise<void> => {
  const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock_shared($1) as taken', [
    RESTORE_LOCK,
  ]);
  if (rows[0]?.taken !== true) throw restoreRuns();
};

/**
 * Takes the lock shared and refuses an unfinished restore. Throws `DATABASE.RESTORE_RUNS` or
 * `DATABASE.RESTORE_UNFINISHED`.
 */
export const assertNoRestore = async (client: pg.ClientBase): Promise<void> => {
  await shareRestoreLock(client);
  const unfinished = await readUnfinishedRestore(client);
  if (unfinished !== null) throw unfinishedRestore(unfinished);
};

interface Connected {
  readonly client: pg.Client;
  /** Id of the newest restore; null for a database that was never restored. */
  readonly newest: string | null;
  readonly closed: Promise<void>;
}

const connect = async ({ url, applicationName }: HoldOptions): Promise<Connected> => {
  const client = new pg.Client({
    connectionString: url,
    application_name: applicationName,
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
  });
  const closed = new Promise<void>((resolve) => client.once('end', resolve));
  // `end` follows. Without a listener the event would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await shareRestoreLock(client);
    const [newest] = await readRestores(client);
    if (newest !== undefined && isUnfinished(newest)) throw unfinishedRestore(newest);
    return { client, newest: newest?.id ?? null, closed };
  } catch (error) {
    await client.end().catch(() => undefined);
    throw isDatabaseError(error) ? translateDatabaseError(error) : error;
  }
};

const restored = (): AppError =>
  rejected('DATABASE.RESTORED', 'the database was restored while this process was cut off from it');

const isRestore = (error: unknown): error is AppError =>
  isAppError(error) && /^DATABASE\.RESTORE/.test(error.code);

class Hold implements DatabaseHold {
  readonly lost: Promise<AppError>;
  private readonly released = new AbortController();

  constructor(
    private readonly options: HoldOptions,
    private connected: Connected,
  ) {
    this.lost = this.follow(connected.newest).catch(
      (error: unknown) => (isRestore(error) ? error : new Promise(() => undefined)), // released
    );
  }

  async release(): Promise<void> {
    this.released.abort(new Error('the database is released'));
    await this.connected.client.end();
  }

  /** Connects again after each loss. Resolves when a restore has taken place. */
  private async follow(newest: string | null): Promise<AppError> {
    const { signal } = this.released;
    for (;;) {
      await this.connected.closed;
      signal.throwIfAborted();
      this.connected = await retry(() => this.connectAgain(), {
        ...{ firstMs: RETRY_MS, maxMs: MAX_RETRY_MS, signal },
        isRetryable: (error) => !isRestore(error),
        onRetry: (err) => this.options.logger.debug({ err }, 'database hold lost, retrying'),
      });
      if (this.connected.newest !== newest) return restored();
    }
  }

  /** Connects, and closes a connection that is ready only after the release. */
  private async connectAgain(): Promise<Connected> {
    const connected = await connect(this.options);
    if (this.released.signal.aborted) await connected.client.end();
    return connected;
  }
}

/**
 * Holds the database for the life of this process, on a connection of its own. Waits for a running
 * restore. Throws `DATABASE.RESTORE_UNFINISHED`, and `DATABASE.RESTORE_RUNS` or `LOG.UNAVAILABLE`
 * after the time limit.
 */
export const holdDatabase = async (options: HoldOptions): Promise<DatabaseHold> => {
  const connected = await retry(() => connect(options), {
    firstMs: RETRY_MS,
    maxMs: RETRY_MS,
    withinMs: options.withinMs ?? 30_000,
    isRetryable: (error) => isAppError(error) && error.kind === 'transient',
    onRetry: (err) => options.logger.warn({ err }, 'database not usable yet, retrying'),
  });
  return new Hold(options, connected);
};

/** Name of a restore's connections in pg_stat_activity. */
export const RESTORE_APPLICATION = 'antiphon-restore';

const USERS_SQL = `select distinct application_name as name from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and application_name like 'antiphon-%'
    and application_name <> 'antiphon-supervisor' order by 1`;

/** PostgreSQL ends the session of a process that has just stopped a little later, ms. */
const LEAVING_MS = 2_000;

/** Refuses to restore under a running service, which would append facts of the replaced history. */
const lockAlone = async (client: pg.Client): Promise<void> => {
  const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [
    RESTORE_LOCK,
  ]);
  const users = await client.query<{ name: string }>(USERS_SQL);
  if (rows[0]?.taken === true && users.rows.length === 0) return;
  const names = users.rows.map(({ name }) => name).join(', ') || 'other processes';
  throw conflict('BACKUP.DATABASE_USED', `${names} still use the database: stop all services, then restore`);
};

/**
 * Runs `work` on one connection that holds the restore lock alone. A lost connection ends the lock
 * and the transaction together.
 */
export const withRestoreLock = async <T>(
  url: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> => {
  const client = new pg.Client({
    connectionString: url,
    application_name: RESTORE_APPLICATION,
    connectionTimeoutMillis: 5_000,
    lock_timeout: 10_000,
    keepAlive: true,
  });
  // The failing statement reports it.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await retry(() => lockAlone(client), {
      ...{ firstMs: 100, maxMs: 400, withinMs: LEAVING_MS },
      isRetryable: (error) => isAppError(error) && error.code === 'BACKUP.DATABASE_USED',
    });
    return await work(client);
  } catch (error) {
    throw isDatabaseError(error) ? translateDatabaseError(error) : error;
  } finally {
    await client.end().catch(() => undefined);
  }
};
