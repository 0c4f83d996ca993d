import pg from 'pg';
import { bug } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { checkPostgresPatch } from '@antiphon/unsafe';
import { shareRestoreLock } from './backup/hold-database.js';
import { isDatabaseError, translateDatabaseError } from './database-error.js';
import { ALL_WORKSPACES, setWorkspaceSql, workspacePrelude } from './workspace.js';

export interface PoolOptions {
  readonly url: string;
  /** Name in pg_stat_activity, such as `antiphon-agent`. */
  readonly applicationName: string;
  /** Role that each connection sets, such as `antiphon_agent`; by default the login's own. */
  readonly role?: string;
  /**
   * Workspace of every statement that names none (`inWorkspace`); `ALL_WORKSPACES` for a process of
   * system readers. Without it, such a statement reads no row of a tenant.
   */
  readonly workspace?: string;
  readonly max?: number;
  readonly connectionTimeoutMs?: number;
  readonly statementTimeoutMs?: number;
  readonly lockTimeoutMs?: number;
  /** Maximum idle time within a transaction, ms; default 5,000. */
  readonly idleInTransactionMs?: number;
  /** True for services: no connection can be opened during a restore, and none can begin later. */
  readonly refuseDuringRestore?: boolean;
  readonly logger?: Logger;
}

/** Returns the URL with an option that sets a role at connect; its other options stay. */
export const withRole = (url: string, role: string): string => {
  const parsed = new URL(url);
  const options = [parsed.searchParams.get('options'), `-c role=${role}`].filter(Boolean).join(' ');
  // URLSearchParams writes a blank as `+`, which connection strings treat as a plus sign.
  parsed.searchParams.delete('options');
  const query = [parsed.search.slice(1), `options=${encodeURIComponent(options)}`].filter(Boolean).join('&');
  parsed.search = query;
  return parsed.href;
};

/**
 * Logs a broken idle connection (after a restart of the server, for example). The pool replaces it
 * at its next use. Without a listener the event would end the process.
 */
const logBrokenConnections = (pool: pg.Pool, logger: Logger | undefined): void => {
  pool.on('error', (error) => logger?.warn({ err: error }, 'idle database connection lost'));
};

/** Typed as void, but the pool awaits the promise and discards the client if it rejects. */
const onConnectOf = (prepare: (client: pg.ClientBase) => Promise<unknown>) =>
  prepare as (client: pg.ClientBase) => void;

const prepareConnection =
  ({ refuseDuringRestore, workspace }: PoolOptions) =>
  async (client: pg.ClientBase): Promise<void> => {
    if (refuseDuringRestore === true) await shareRestoreLock(client);
    await client.query(workspacePrelude(workspace));
  };

/**
 * Creates a pool whose connections cannot hang: connecting, statements, lock waits and idle
 * transactions have timeouts.
 */
export const createPool = (options: PoolOptions): pg.Pool => {
  const pool = new pg.Pool({
    connectionString: options.role === undefined ? options.url : withRole(options.url, options.role),
    application_name: options.applicationName,
    max: options.max ?? 8,
    connectionTimeoutMillis: options.connectionTimeoutMs ?? 5_000,
    statement_timeout: options.statementTimeoutMs ?? 15_000,
    lock_timeout: options.lockTimeoutMs ?? 5_000,
    // A process suspended in a transaction may hold the log's locks: not longer than a lease.
    idle_in_transaction_session_timeout: options.idleInTransactionMs ?? 5_000,
    keepAlive: true,
    onConnect: onConnectOf(prepareConnection(options)),
  });
  logBrokenConnections(pool, options.logger);
  return pool;
};

/**
 * Creates a pool of its own for statements that must not wait for others, with the database, role
 * and timeouts of another pool.
 */
export const createSeparatePool = (like: pg.Pool, max: number, logger?: Logger): pg.Pool => {
  // The pool defines the password as non-enumerable, so the spread misses it.
  const pool = new pg.Pool({ ...like.options, password: like.options.password, max });
  logBrokenConnections(pool, logger);
  return pool;
};

export interface PipelineOptions {
  /** SQL that prepares each new connection: settings and statements. */
  readonly prelude: string;
  /** Workspace of every statement on these connections; by default none. */
  readonly workspace?: string;
  readonly logger?: Logger;
}

/**
 * Creates a pool of one connection in pg's pipeline mode, with the database, role and timeouts of
 * another pool. Statements that are issued without waiting are sent without waiting. Outside of
 * `begin read write` the connection is read-only: statements behind a failed `begin` would
 * otherwise be committed one by one.
 */
export const createPipelinedPool = (
  like: pg.Pool,
  { prelude, workspace, logger }: PipelineOptions,
): pg.Pool => {
  const inherited = like.options.onConnect as ((client: pg.ClientBase) => Promise<unknown>) | undefined;
  const settings = ['set default_transaction_read_only = on', prelude];
  if (workspace !== undefined) settings.push(`set antiphon.workspace = ${pg.escapeLiteral(workspace)}`);
  const prepare = async (client: pg.ClientBase): Promise<unknown> => {
    await inherited?.(client);
    return client.query(settings.join('; '));
  };
  if (logger) checkPostgresPatch(new pg.Client(), logger);
  const pool = new pg.Pool({
    ...like.options,
    // The pool defines the password as non-enumerable, so the spread misses it.
    password: like.options.password,
    max: 1,
    min: 0,
    pipeline: true,
    onConnect: onConnectOf(prepare),
  });
  logBrokenConnections(pool, logger);
  return pool;
};

/** A client on loan from its pool. */
export interface BorrowedClient {
  readonly client: pg.PoolClient;
  /** Returns the client to the pool. After an error the pool closes it. */
  release(broken?: Error): void;
}

/** Takes a client from the pool. Rejects with the error of `pg`. */
export const borrowClient = async (pool: pg.Pool): Promise<BorrowedClient> => {
  const client = await pool.connect();
  let lost: Error | undefined;
  // The pool does not listen to a client on loan. Without a listener, a broken connection would end
  // the process. The failing statement reports the error to the caller as well.
  const onError = (error: Error): void => {
    lost = error;
  };
  client.on('error', onError);
  return {
    client,
    release: (broken) => {
      const error = broken ?? lost;
      // A broken client may emit further errors while it is being closed.
      if (error === undefined) client.off('error', onError);
      client.release(error);
    },
  };
};

/**
 * Runs `work` in one transaction (read committed): commits after it, or rolls back when it rejects.
 * The transaction is in `workspace`, by default in all of them: transactions of several statements
 * belong to system readers and writers. Rejects with an AppError for an error of `pg`, and with any
 * other error of `work` unchanged.
 */
export const inTransaction = async <T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<T>,
  workspace: string = ALL_WORKSPACES,
): Promise<T> => {
  const { client, release } = await borrowClient(pool).catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
  let broken: Error | undefined;
  try {
    await client.query(`begin; ${setWorkspaceSql(workspace)}`);
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

const DURABLE_SETTINGS: Readonly<Record<string, readonly string[]>> = {
  fsync: ['on'],
  full_page_writes: ['on'],
  synchronous_commit: ['on', 'remote_apply'],
};

/** Rejects with `DATABASE.NOT_DURABLE` if the server could lose acknowledged writes. */
export const assertDurable = async (pool: pg.Pool): Promise<void> => {
  const text = 'select name, setting from pg_settings where name = any ($1)';
  const { rows } = await pool
    .query<{ name: string; setting: string }>(text, [Object.keys(DURABLE_SETTINGS)])
    .catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
  const unsafe = rows.filter(({ name, setting }) => !DURABLE_SETTINGS[name]?.includes(setting));
  if (unsafe.length > 0)
    throw bug(
      'DATABASE.NOT_DURABLE',
      `the database may lose acknowledged writes: ${unsafe.map(({ name, setting }) => `${name}=${setting}`).join(', ')}`,
    );
};
