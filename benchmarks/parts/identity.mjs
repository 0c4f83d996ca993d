import { readFileSync } from 'node:fs';
import pg from 'pg';
import { startSubject } from '../lib/processes.mjs';
import { summarize } from '../lib/stats.mjs';

const PLAN = { full: { rounds: 10, turns: 60, warmUp: 20 }, quick: { rounds: 2, turns: 10, warmUp: 3 } };

const PROTECTED_TABLES = `
  select format('%I.%I', n.nspname, c.relname) as name
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where c.relrowsecurity and c.relkind in ('r', 'p')
  order by 1`;

const setRowSecurity = async (client, tables, action) => {
  for (const table of tables) await client.query(`alter table ${table} ${action} row level security`);
};

/**
 * Measures milliseconds a turn with an API key and row-level security, and without both, in one
 * stack. Rounds alternate. The gateway's adapter and its access checks are part of both.
 */
export const benchIdentity = async ({ stack, quick }) => {
  const { rounds, turns, warmUp } = PLAN[quick ? 'quick' : 'full'];
  const token = readFileSync(stack.read().adminKeyFile, 'utf8').trim();
  const client = new pg.Client({ connectionString: stack.adminUrl() });
  await client.connect();
  const { rows } = await client.query(PROTECTED_TABLES);
  const tables = rows.map(({ name }) => name);
  const gatewayUrl = stack.gatewayUrl();
  const variants = [
    { variant: 'API key and row-level security', action: 'enable', latencies: [] },
    { variant: 'neither', action: 'disable', latencies: [] },
  ];
  try {
    variants[0].subject = await startSubject('antiphon-turn', { gatewayUrl, token });
    variants[1].subject = await startSubject('antiphon-turn', { gatewayUrl });
    for (let round = -1; round < rounds; round += 1)
      for (const [index, { subject, action, latencies }] of variants.entries()) {
        await setRowSecurity(client, tables, action);
        const params = { tools: 0, sessions: 1, tag: `identity${index}r${round + 1}` };
        await subject.call('turns', { ...params, turns: warmUp, tag: `${params.tag}w` });
        const measured = await subject.call('turns', { ...params, turns });
        if (round >= 0) latencies.push(...measured.latencies);
      }
  } finally {
    await setRowSecurity(client, tables, 'enable');
    await client.end();
    for (const { subject } of variants) await subject?.close();
  }
  return {
    tables: tables.length,
    rows: variants.map(({ variant, latencies }) => ({ variant, ms: summarize(latencies) })),
  };
};
