import pg from 'pg';

/** Restarts a stack with pg_stat_statements. */
export const enableStatements = async (stack) => {
  const client = new pg.Client({ connectionString: stack.adminUrl() });
  await client.connect();
  await client.query("alter system set shared_preload_libraries = 'pg_stat_statements'");
  await client.query("alter system set pg_stat_statements.track = 'top'");
  await client.end();
  await stack.restart();
  const after = new pg.Client({ connectionString: stack.adminUrl() });
  await after.connect();
  await after.query('create extension if not exists pg_stat_statements');
  await after.end();
};

/**
 * Reads the number of calls of each statement of the services' roles and their time, ms, as totals.
 */
export const readStatements = async (client) => {
  const { rows } = await client.query(
    `select r.rolname as role, s.query, sum(s.calls)::int as calls, sum(s.total_exec_time)::float8 as ms
     from pg_stat_statements s join pg_roles r on r.oid = s.userid
     where r.rolname like 'antiphon%' and r.rolname <> current_user group by 1, 2`,
  );
  return new Map(
    rows.map(({ role, query, calls, ms }) => {
      const text = query.replace(/\s+/g, ' ').trim().slice(0, 100);
      return [`${role} ${query}`, { role, query: text, calls, ms }];
    }),
  );
};

/** Returns the calls and their time between two reads, most calls first, divided by `parts`. */
export const statementsBetween = (before, after, parts) =>
  [...after]
    .map(([key, { calls, ms, ...row }]) => ({
      ...row,
      calls: (calls - (before.get(key)?.calls ?? 0)) / parts,
      ms: (ms - (before.get(key)?.ms ?? 0)) / parts,
    }))
    .filter(({ calls }) => calls > 0)
    .toSorted((a, b) => b.calls - a.calls);
