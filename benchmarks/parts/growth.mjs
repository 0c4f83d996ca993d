import pg from 'pg';
import WebSocket from 'ws';
import { costOf, familyOf } from '../lib/process-cost.mjs';
import { startSubject } from '../lib/processes.mjs';
import { shareOf, startStack } from '../lib/stack.mjs';
import { summarize } from '../lib/stats.mjs';

/**
 * Numbers of sessions of one turn. `ANTIPHON_GROWTH_SESSIONS` names others, up to a million. With
 * `ANTIPHON_GROWTH_FOLDER` the stack is kept there, and the next run adds to its sessions.
 */
const SIZES = { full: [1_000, 10_000, 100_000], quick: [200, 2_000] };
const READS = { full: 40, quick: 10 };
const FOLLOW_MS = 1_800_000;

const PATHS = [
  ['sessions', '/sessions?limit=50'],
  ['usage', '/usage?by=agent'],
  ['budgets', '/budgets'],
  ['agents', '/agents'],
  ['events', '/events?order=desc&limit=100'],
  ['search', '/events?order=desc&limit=20&text=the+weather'],
  ['memory', '/memory?agent=main&limit=20'],
  ['past', '/sessions?limit=50&at='],
];

const sizesOf = (quick) => {
  const named = process.env.ANTIPHON_GROWTH_SESSIONS;
  return named === undefined ? SIZES[quick ? 'quick' : 'full'] : named.split(',').map(Number);
};

const readJson = async (url) => {
  const response = await fetch(url);
  const body = await response.json();
  if (response.status !== 200) throw Object.assign(new Error(`${url}: ${JSON.stringify(body)}`), { body });
  return body;
};

/** Waits until every projection has the whole log. Resolves with its head. */
const settled = async (gateway) => {
  const endsAt = performance.now() + FOLLOW_MS;
  for (;;) {
    const { projections = [], head } = await readJson(`${gateway}/api/v1/projections`);
    if (projections.length > 0 && projections.every(({ lag }) => lag === 0)) return head;
    if (performance.now() > endsAt) throw new Error('the projections do not follow the log');
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
};

const WINDOW_MS = 2_000;
/** Share of one processor below which a stack is idle, and the number of such windows in a row. */
const IDLE = { share: 0.1, windows: 3 };

/**
 * Waits until the stack has done what a filled log leaves to it, such as the analysis of tables and
 * the messages of consumers. Resolves with the seconds until then.
 */
const idle = async (stack) => {
  const from = performance.now();
  const spent = () => costOf([...new Set(stack.pids().flatMap(familyOf))]).cpuMs;
  for (let quiet = 0; quiet < IDLE.windows;) {
    const before = spent();
    await new Promise((resolve) => setTimeout(resolve, WINDOW_MS));
    quiet = spent() - before < IDLE.share * WINDOW_MS ? quiet + 1 : 0;
    if (performance.now() - from > FOLLOW_MS) throw new Error('the stack does not become idle');
  }
  return (performance.now() - from - IDLE.windows * WINDOW_MS) / 1_000;
};

const timed = async (work) => {
  const from = performance.now();
  await work();
  return performance.now() - from;
};

/** Repeats a read until it succeeds: a read of the past is refused while the log is folded. */
const ready = async (url) => {
  const endsAt = performance.now() + FOLLOW_MS;
  for (;;)
    try {
      return await readJson(url);
    } catch (error) {
      // 503: the fold keeps the service busy, or is not done.
      if (error.body?.status !== 503 || performance.now() > endsAt) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
};

/** Prints a figure as soon as it is measured: a size may take an hour, and fail later. */
const print = (sessions, name, value) => {
  console.log(JSON.stringify({ at: sessions, [name]: value }));
  return value;
};

/** Milliseconds of each read. The first of each path warms up. */
const readAll = async (gateway, head, count, sessions) => {
  const rows = {};
  for (const [name, path] of PATHS) {
    const url = `${gateway}/api/v1${path}${name === 'past' ? Math.floor(head / 2) : ''}`;
    await ready(url);
    const samples = [];
    for (let index = 0; index < count; index += 1) samples.push(await timed(() => readJson(url)));
    rows[name] = print(sessions, name, summarize(samples));
  }
  return rows;
};

/** Milliseconds of turns of new sessions, one after another. */
const takeTurns = async (gateway, count, tag) => {
  const socket = new WebSocket(`${gateway.replace(/^http/, 'ws')}/ws`);
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  const take = (id) =>
    new Promise((resolve, reject) => {
      const onMessage = (data) => {
        const frame = JSON.parse(data);
        if (frame.id !== id || (frame.event !== 'done' && frame.error === undefined)) return;
        socket.off('message', onMessage);
        if (frame.data?.status === 'completed') resolve();
        else reject(new Error(JSON.stringify(frame)));
      };
      socket.on('message', onMessage);
      const params = { channel: 'growth', account: tag, peer: `p${id}`, content: 'hello' };
      socket.send(JSON.stringify({ id, method: 'chat.send', params }));
    });
  const samples = [];
  for (let id = 1; id <= count + 5; id += 1) {
    const ms = await timed(() => take(id));
    if (id > 5) samples.push(ms);
  }
  socket.close();
  return summarize(samples);
};

const asOwner = async (url, sql) => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows[0];
  } finally {
    await client.end();
  }
};
const COUNT_SQL = 'select count(*)::float8 as sessions from agent_sessions';
const DISK_SQL = `select pg_database_size(current_database())::float8 as data,
  (select sum(size) from pg_ls_waldir())::float8 as wal`;

/** MiB of each service. */
const memoryOf = ({ services }) =>
  Object.fromEntries(
    Object.entries(services).map(([name, processes]) => [
      name,
      processes.reduce((sum, { pid }) => sum + shareOf(pid, 0), 0) / 1_024,
    ]),
  );

/**
 * Measures a stack of its own whose log grows by sessions of one turn. The sessions are appended in
 * bulk, as the services append them, and the projections follow as they always do.
 */
export const benchGrowth = async (context) => {
  const { providerUrl, quick } = context;
  const kept = process.env.ANTIPHON_GROWTH_FOLDER;
  const stack = await startStack(providerUrl, [], kept === undefined ? {} : { kept });
  // Its processes are this part's own, not other work of the machine.
  context.stack = stack;
  const rows = [];
  let writer;
  try {
    writer = await startSubject('growth-writer', { databaseUrl: stack.adminUrl() }, { timeoutMs: 7_200_000 });
    const count = READS[quick ? 'quick' : 'full'];
    let { sessions } = await asOwner(stack.adminUrl(), COUNT_SQL);
    for (const size of sizesOf(quick)) {
      await writer.call('fill', Math.max(size - sessions, 0));
      sessions = Math.max(size, sessions);
      const head = await settled(stack.gatewayUrl());
      const busyS = await idle(stack);
      print(sessions, 'filled', { head, busyS });
      const turn = print(sessions, 'turn', await takeTurns(stack.gatewayUrl(), count, `s${size}`));
      const memory = print(sessions, 'memory', memoryOf(stack.read()));
      const { data, wal } = print(sessions, 'disk', await asOwner(stack.adminUrl(), DISK_SQL));
      const reads = await readAll(stack.gatewayUrl(), head, count, sessions);
      const startMs = print(sessions, 'startMs', await stack.restart());
      rows.push({ sessions, head, busyS, turn, reads, data, wal, memory, startMs });
    }
    return rows;
  } finally {
    await writer?.close();
    context.stack = undefined;
    await stack.stop();
  }
};
