import pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';
import type { ProjectionDefinition } from './projection-definition.js';

/** Whoever folds may read the log and every projection, and write nothing but its own temporary tables. */
const FOLDING_ROLE = 'antiphon_reader';
const STATEMENT_TIMEOUT = '10min';

/** Quoted for SQL. */
export const liveTable = (name: string): string => `public.${pg.escapeIdentifier(name)}`;
export const shadowTable = (name: string): string => `pg_temp.${pg.escapeIdentifier(name)}`;

const PARKED = 'projection_parked';

// Nothing analyses temporary tables, so a planner without figures is kept from reading them whole.
const SETTINGS = `set role ${FOLDING_ROLE}; set statement_timeout = '${STATEMENT_TIMEOUT}'; set jit = off;
  set idle_in_transaction_session_timeout = '1min'; set synchronous_commit = off; set temp_buffers = '64MB'; set enable_seqscan = off`;

/** What a connection's temporary tables come first of: a handler's statements find the shadows by the tables' own names. */
const shadowsOf = ({ tables }: ProjectionDefinition): string =>
  [...tables.map(({ name }) => name), PARKED]
    .map((name) => `create temp table ${pg.escapeIdentifier(name)} (like ${liveTable(name)} including all)`)
    .join('; ');

/**
 * Runs `work` on a connection of its own, beside the pool, on which the projection's tables (and its parked streams) are
 * empty temporary ones. As the reading role: a handler that writes to a table which its definition does not name is
 * refused. What `pg` throws comes out as an AppError.
 */
export const withShadowTables = async <T>(
  pool: pg.Pool,
  definition: ProjectionDefinition,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> => {
  const client = new pg.Client({ ...pool.options, password: pool.options.password, pipeline: true });
  // The statement that fails says so too; unheard, it would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query(SETTINGS);
    await client.query(shadowsOf(definition));
    return await work(client);
  } catch (error) {
    throw translateDatabaseError(error);
  } finally {
    await client.end().catch(() => undefined);
  }
};
