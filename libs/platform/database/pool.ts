import pg from 'pg';
import { bug } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { isDatabaseError, translateDatabaseError } from './database-error.js';

export interface PoolOptions {
  readonly url: string;
  /** Shown in pg_stat_activity, e.g. `antiphon-agent`. */
  readonly applicationName: string;
  /** Role taken at connect, e.g. `antiphon_agent`; without it, the login's own. */
  readonly role?: string;
  readonly max?: number;
  readonly connectionTimeoutMs?: number;
  readonly statementTimeoutMs?: number;
  readonly lockTimeoutMs?: number;
  /** How long a transaction may do nothing, default 5,000 ms. */
  readonly idleInTransactionMs?: number;
  readonly logger?: Logger;
}

/** The same URL with a role to be taken at connect, beside whatever options it has. */
export const withRole = (url: string, role: string): string => {
  const parsed = new URL(url);
  const options = [parsed.searchParams.get('options'), `-c role=${role}`].filter(Boolean).join(' ');
  // URLSearchParams writes a blank as `+`, which connection strings take literally.
  parsed.searchParams.delete('options');
  const query = [parsed.search.slice(1), `options=${encodeURIComponent(options)}`].filter(Boolean).join('&');
  parsed.search = query;
  return parsed.href;
};

/** A pool whose sessions cannot hang: statements, lock waits, idle transactions and connecting are bounded. */
export const createPool = (options: PoolOptions): pg.Pool => {
  const pool = new pg.Pool({
    connectionString: options.role === undefined ? options.url : withRole(options.url, options.role),
    application_name: options.applicationName,
    max: options.max ?? 8,
    connectionTimeoutMillis: options.connectionTimeoutMs ?? 5_000,
    statement_timeout: options.statementTimeoutMs ?? 15_000,
    lock_timeout: options.lockTimeoutMs ?? 5_000,
    // A process that was stopped in its transaction holds locks, those of the log maybe: no longer than a lease lasts.
    idle_in_transaction_session_timeout: options.idleInTransactionMs ?? 5_000,
    keepAlive: true,
  });
  // An idle connection that breaks (engine restart) is replaced at the next use; unheard, it would end the process.
  pool.on('error', (error) => options.logger?.warn({ err: error }, 'an idle database connection broke'));
  return pool;
};

/** A client that is out of its pool; `release` gives it back, with an error when it must not be used again. */
export interface BorrowedClient {
  readonly client: pg.PoolClient;
  release(broken?: Error): void;
}

/** Takes a client out of the pool. Rejects with what `pg` throws. */
export const borrowClient = async (pool: pg.Pool): Promise<BorrowedClient> => {
  const client = await pool.connect();
  let lost: Error | undefined;
  // While a client is out, the pool does not listen: unheard, a broken connection would end the process.
  // Whoever uses the client learns of it from the statement that fails.
  const onError = (error: Error): void => {
    lost = error;
  };
  client.on('error', onError);
  return {
    client,
    release: (broken) => {
      const error = broken ?? lost;
      // A broken client may still report while it is being closed.
      if (error === undefined) client.off('error', onError);
      client.release(error);
    },
  };
};

/**
 * Runs `work` in one transaction (read committed): commits its result, rolls back what throws.
 * What `pg` throws comes out as an AppError, what `work` throws as it is.
 */
export const inTransaction = async <T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<T>,
): Promise<T> => {
  const { client, release } = await borrowClient(pool).catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
  let broken: Error | undefined;
  try {
    await client.query('begin');
    const result = await work(client);
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch((failure: Error) => {
      broken = failure;
    });
    throw isDatabaseError(error) ? translateDatabaseError(error) : error;
  } finally {
    release(broken);
  }
};

/** Refuses a server that could lose what it has acknowledged: part of every start. */
export const assertDurable = async (pool: pg.Pool): Promise<void> => {
  const wanted: Readonly<Record<string, readonly string[]>> = {
    fsync: ['on'],
    full_page_writes: ['on'],
    synchronous_commit: ['on', 'remote_apply'],
  };
  const { rows } = await pool
    .query<{ name: string; setting: string }>('select name, setting from pg_settings where name = any ($1)', [
      Object.keys(wanted),
    ])
    .catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
  const unsafe = rows.filter(({ name, setting }) => !wanted[name]?.includes(setting));
  if (unsafe.length > 0)
    throw bug(
      'DATABASE.NOT_DURABLE',
      `the database may lose acknowledged writes: ${unsafe.map(({ name, setting }) => `${name}=${setting}`).join(', ')}`,
    );
};
