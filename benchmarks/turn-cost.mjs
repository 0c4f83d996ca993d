// Measures a turn for each process: processor time, voluntary context switches and, where possible,
// transactions. Run it after a build: `node_modules/.bin/node benchmarks/turn-cost.mjs [--tools n]
// [--sessions n] [--turns n] [--rounds n] [--peer] [--statements] [--profile folder]`. Processor
// time says more than milliseconds where a machine is shared. `--peer` measures LangGraph.js in the
// same rounds. `--statements` counts the statements of each service's role and their time, per turn
// and per second of an idle stack. `--messages` does so for the messages of NATS, by subject.
// `--profile` writes a V8 profile of each Node process, with the window of the measurement in
// `window.json`.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { createDatabases } from './lib/databases.mjs';
import { countMessages } from './lib/messages.mjs';
import { enableStatements, readStatements, statementsBetween } from './lib/statements.mjs';
import { startMockProvider, startSubject } from './lib/processes.mjs';
import { startStack } from './lib/stack.mjs';
import { median, show, summarize } from './lib/stats.mjs';
import { readTurnCosts, summarizeTurnCosts, turnCostsBetween } from './lib/turn-cost.mjs';

const { values } = parseArgs({
  options: {
    tools: { type: 'string', default: '0' },
    sessions: { type: 'string', default: '1' },
    turns: { type: 'string', default: '200' },
    rounds: { type: 'string', default: '3' },
    warm: { type: 'string', default: '20' },
    peer: { type: 'boolean', default: false },
    statements: { type: 'boolean', default: false },
    messages: { type: 'boolean', default: false },
    profile: { type: 'string' },
  },
});
const tools = Number(values.tools);
const sessions = Number(values.sessions);
const turns = Math.ceil(Number(values.turns) / sessions);
const rounds = Number(values.rounds);
/** Time over which the statements of an idle stack are counted, ms. */
const IDLE_MS = 20_000;

const readServer = async (client) => {
  const { rows } = await client.query(
    `select (select sum(xact_commit) from pg_stat_database)::int as commits, (select wal_bytes from pg_stat_wal)::float as wal,
       (select sum(fsyncs) from pg_stat_io where object = 'wal')::float as syncs`,
  );
  return rows[0];
};

const profiled = async (folder, start) => {
  if (folder === undefined) return start();
  const dir = resolve(folder);
  mkdirSync(dir, { recursive: true });
  process.env.ANTIPHON_NODE_OPTIONS = `--cpu-prof --cpu-prof-interval=250 --cpu-prof-dir=${dir}`;
  const stack = await start();
  delete process.env.ANTIPHON_NODE_OPTIONS;
  return stack;
};

const provider = await startMockProvider();
const stack = await profiled(values.profile, () => startStack(provider.url));
if (values.statements) await enableStatements(stack);
const databases = await createDatabases(stack.adminUrl(), ['langgraph']);
const client = new pg.Client({ connectionString: stack.adminUrl() });
await client.connect();
const subjects = [await startSubject('antiphon-turn', { gatewayUrl: stack.gatewayUrl() })];
if (values.peer)
  subjects.push(
    await startSubject('langgraph', { providerUrl: provider.url, databaseUrl: databases.url('langgraph') }),
    await startSubject('bare-provider', { providerUrl: provider.url }),
  );
for (const subject of subjects)
  await subject.call('turns', { tools, sessions: 32, turns: Number(values.warm), tag: 'warm' });
const micros = () => Number(process.hrtime.bigint() / 1_000n);

const ours = [];
const latencies = new Map(subjects.map(({ name }) => [name, []]));
const rates = new Map(subjects.map(({ name }) => [name, []]));
const window = { from: micros(), to: 0 };
for (let round = -1; round < rounds; round += 1)
  for (const subject of subjects) {
    const isOurs = subject === subjects[0];
    const server = isOurs && (await readServer(client));
    const statements = isOurs && values.statements && (await readStatements(client));
    const before = await readTurnCosts(stack);
    const outcome = await subject.call('turns', { tools, sessions, turns, tag: `r${round + 1}` });
    const after = await readTurnCosts(stack);
    const serverAfter = isOurs && (await readServer(client));
    if (round < 0) continue;
    latencies.get(subject.name).push(...outcome.latencies);
    rates.get(subject.name).push((outcome.latencies.length / outcome.ms) * 1_000);
    if (!isOurs) continue;
    const count = outcome.latencies.length;
    const row = { server: {} };
    for (const key of ['commits', 'wal', 'syncs']) row.server[key] = (serverAfter[key] - server[key]) / count;
    if (values.statements)
      row.statements = statementsBetween(statements, await readStatements(client), count);
    row.costs = turnCostsBetween(before, after, count);
    row.costs.processors.push({ name: 'client', cpuMs: outcome.cpuMs / count, switches: 0 });
    ours.push(row);
  }
window.to = micros();

const { stages, processors } = summarizeTurnCosts(ours.map(({ costs }) => costs));
console.log(
  `tools ${tools} · sessions ${sessions} · ${turns * sessions} turns × ${rounds}; a turn, medians of the rounds:`,
);
for (const { name, cpuMs, switches } of processors)
  console.log(
    `  ${name.padEnd(12)} ${cpuMs.toFixed(2).padStart(6)} CPU-ms  ${switches.toFixed(1).padStart(6)} switches`,
  );
const whole = processors.filter(({ name }) => name !== 'client').reduce((sum, { cpuMs }) => sum + cpuMs, 0);
console.log(`  ${'all'.padEnd(12)} ${whole.toFixed(2).padStart(6)} CPU-ms, without the client`);
const server = (key) => median(ours.map((row) => row.server[key]));
console.log(
  `  PostgreSQL: ${server('commits').toFixed(1)} transactions, ${server('syncs').toFixed(2)} WAL syncs, ${(server('wal') / 1_024).toFixed(1)} KiB of WAL`,
);
const printStatements = (rows) => {
  for (const { role, query, calls, ms } of rows)
    console.log(
      `  ${calls.toFixed(2).padStart(6)} ${ms.toFixed(3).padStart(7)} ms ${role.padEnd(18)} ${query}`,
    );
  console.log(
    `  ${rows
      .reduce((sum, { calls }) => sum + calls, 0)
      .toFixed(2)
      .padStart(6)} all`,
  );
};
if (values.statements) {
  console.log('  statements a turn, in the last round:');
  printStatements(ours.at(-1).statements);
  const idle = await readStatements(client);
  await wait(IDLE_MS);
  console.log('  statements a second, idle:');
  printStatements(statementsBetween(idle, await readStatements(client), IDLE_MS / 1_000));
}
const printMessages = (rows) => {
  for (const { subject, messages } of rows) console.log(`  ${messages.toFixed(2).padStart(6)} ${subject}`);
  console.log(
    `  ${rows
      .reduce((sum, { messages }) => sum + messages, 0)
      .toFixed(2)
      .padStart(6)} all`,
  );
};
if (values.messages) {
  console.log('  messages a turn, by subject:');
  const round = { tools, sessions, turns, tag: 'messages' };
  const whole = turns * sessions;
  printMessages(await countMessages(stack, whole, () => subjects[0].call('turns', round)));
  console.log('  messages a second, idle:');
  printMessages(await countMessages(stack, IDLE_MS / 1_000, () => wait(IDLE_MS)));
}
for (const { service, stage, ms, perTurn } of stages)
  console.log(`  ${service.padEnd(8)} ${stage.padEnd(20)} ${show(ms).padStart(7)} ms × ${show(perTurn)}`);
for (const { name } of subjects) {
  const { p50, p90 } = summarize(latencies.get(name));
  console.log(
    `  ${name.padEnd(16)} p50 ${p50.toFixed(2)} ms · p90 ${p90.toFixed(2)} ms · ${median(rates.get(name)).toFixed(1)} turns/s`,
  );
}
if (values.peer) {
  const [own, peer, bare] = subjects.map(({ name }) => summarize(latencies.get(name)).p50);
  console.log(
    `  added to the provider call, compared with LangGraph.js: ${((own - bare) / (peer - bare)).toFixed(2)} ×`,
  );
}
if (values.profile) writeFileSync(join(values.profile, 'window.json'), JSON.stringify(window));

for (const subject of subjects) await subject.close();
await client.end();
await databases.drop();
await stack.stop();
provider.close();
