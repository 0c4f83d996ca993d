import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { checkFigure, report } from '@antiphon/testing/load';
import { startStack, type TestStack } from '@antiphon/testing/stack';
import { letTimePass } from '@antiphon/testing/waits';
import pg from 'pg';
import { waitForValue } from './stack-under-test.js';

jest.setTimeout(1_200_000);

/** A smaller number checks the spec itself. */
const AGENTS = Number(process.env['ANTIPHON_IDLE_AGENTS'] ?? 10_000);
const LANES = 16;
/** Time after a start in which the services settle, and the time that is observed, ms. */
const SETTLE_MS = 20_000;
const OBSERVED_MS = 30_000;
const MAX_MIB = 50;

/** Use of a stack that has no work. */
interface Rest {
  /** Resident memory of all services. */
  readonly mib: number;
  /** Transactions of the database in a second. */
  readonly transactions: number;
  /** Processor time of all services in a second, ms. */
  readonly cpuMs: number;
}

let stack: TestStack;
let database: pg.Client;

const pidsOf = (): number[] =>
  Object.values(stack.stackJson().services)
    .flat()
    .flatMap(({ pid }) => pid ?? []);
const residentMib = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
/** Returns processor time in ticks of 10 ms. The name of the process may contain spaces. */
const cpuTicks = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return Number(fields[11]) + Number(fields[12]);
};
const sumOf = (read: (pid: number) => number): number => pidsOf().reduce((sum, pid) => sum + read(pid), 0);
const countTransactions = async (): Promise<number> => {
  const { rows } = await database.query<{ count: string }>(
    'select sum(xact_commit + xact_rollback) as count from pg_stat_database',
  );
  return Number(rows[0]?.count);
};

const measureRest = async (): Promise<Rest> => {
  await letTimePass(SETTLE_MS);
  const [ticks, transactions] = [sumOf(cpuTicks), await countTransactions()];
  await letTimePass(OBSERVED_MS);
  const seconds = OBSERVED_MS / 1_000;
  return {
    mib: sumOf(residentMib),
    transactions: ((await countTransactions()) - transactions) / seconds,
    cpuMs: ((sumOf(cpuTicks) - ticks) * 10) / seconds,
  };
};

const connect = async (): Promise<void> => {
  database = new pg.Client({ connectionString: stack.databaseUrl });
  await database.connect();
};
const restart = async (): Promise<void> => {
  await database.end();
  stack = await stack.restart();
  await connect();
};

const spawn = async (index: number): Promise<void> => {
  const body = JSON.stringify({ id: `idle-${index}`, name: `Idle ${index}`, systemPrompt: 'Wait.' });
  const headers = { 'content-type': 'application/json', 'idempotency-key': `idle-${index}` };
  const url = `${stack.gatewayUrl}/api/v1/agents`;
  const response = await fetch(url, { method: 'POST', headers, body });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  await response.arrayBuffer();
};

beforeAll(async () => {
  stack = await startStack();
  await connect();
}, 180_000);
afterAll(async () => {
  await database?.end();
  await stack?.stop();
}, 120_000);

describe('10,000 idle agents', () => {
  // @shows agents-A15
  it('are rows only: no memory, no processor time and no statement of their own', async () => {
    await spawn(0);
    await restart();
    const before = await measureRest();
    const startedAt = performance.now();
    let next = 1;
    const lane = async (): Promise<void> => {
      while (next < AGENTS) await spawn(next++);
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    const spawnMs = (performance.now() - startedAt) / (AGENTS - 1);
    await waitForValue('the list of all agents', async () => {
      const { rows } = await database.query<{ count: string }>('select count(*) from agent_agents');
      return Number(rows[0]?.count) >= AGENTS || undefined;
    });
    await restart();
    const after = await measureRest();
    report(`${AGENTS} spawns: ${spawnMs.toFixed(1)} ms each over ${LANES} lanes`);
    report(`without: ${JSON.stringify(before)}; with: ${JSON.stringify(after)}`);
    const added = after.mib - before.mib;
    checkFigure({ what: 'memory of 10,000 idle agents', value: added, unit: 'MiB', atMost: MAX_MIB });
    // Each agent would cost 333 transactions a second at one every 30 seconds.
    const transactions = after.transactions - before.transactions;
    checkFigure({ what: 'transactions of 10,000 idle agents', value: transactions, unit: '/s', atMost: 10 });
    expect(after.cpuMs).toBeLessThan(before.cpuMs * 1.5 + 50);
  });
});
