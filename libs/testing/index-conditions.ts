import pg from 'pg';
import type { DatabaseRole, TestDatabase } from './test-database.js';

const FILL_SQL = `insert into events
  select coalesce((select max(position) from events), 0) + i, 'default', 'session', 'session-' || md5((i / 10)::text)::uuid,
    i % 10 + 1, gen_random_uuid(), (array ['SessionForked', 'TurnRequested', 'ModelCallStarted'])[i % 3 + 1], 1, '{}', '{}',
    clock_timestamp(), ''
  from generate_series(1, 20000) i`;

/**
 * Returns the conditions of the index scans in the plan of a role's statement. The plan is for any
 * values of its parameters, and for a log with 20,000 more events, which are gone afterwards.
 */
export const indexConditions = async (
  { url }: Pick<TestDatabase, 'url'>,
  role: DatabaseRole,
  sql: string,
): Promise<string[]> => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`begin; ${FILL_SQL}; analyze events; set local role antiphon_${role};
      set local antiphon.workspace = 'default'; set local enable_seqscan = off`);
    const { rows } = await client.query<{ readonly 'QUERY PLAN': string }>(`explain (generic_plan) ${sql}`);
    return rows.map((row) => row['QUERY PLAN']).filter((line) => line.includes('Index Cond'));
  } finally {
    // The end of the connection rolls back.
    await client.end();
  }
};
