import { createDatabases, readWalBytes } from '../lib/databases.mjs';
import { costOf, familyOf } from '../lib/process-cost.mjs';
import { startSubject } from '../lib/processes.mjs';
import { startStack } from '../lib/stack.mjs';
import { median, summarize } from '../lib/stats.mjs';
import { readTurnCosts, summarizeTurnCosts, turnCostsBetween } from '../lib/turn-cost.mjs';

const TURNS_PER_SESSION = 10;
const SCENARIOS = [
  { name: 'no tools, one after another', tools: 0, sessions: 1 },
  { name: 'no tools, 32 sessions', tools: 0, sessions: 32 },
  { name: 'two tool calls, one after another', tools: 2, sessions: 1 },
  { name: 'two tool calls, 32 sessions', tools: 2, sessions: 32 },
];
/** Turns of a lane in one round. */
const TURNS = { full: { 1: 30, 32: 5 }, quick: { 1: 10, 32: 2 } };
const ROUNDS = { full: 10, quick: 1 };

/**
 * Turns a lane, 32 lanes: as much work before the first measurement as makes services that run for
 * days what they are.
 */
const WARM_UP = { full: 30, quick: 4 };

const OURS = 'antiphon-turn';
/** Ours again, with memory and metering in the process of the agent. */
const COMPACT = 'antiphon-compact';
const PEER = 'langgraph';
const BARE = 'bare-provider';

const CREATE_AGENT = { builder: 'createAgent' };

/** Peers with a database each. Those that only run one after another would take too long in lanes. */
const PEERS = [
  { name: 'restate' },
  { name: 'dbos-lean', module: 'dbos', options: { form: 'lean' } },
  { name: 'dbos', options: { form: 'documented' } },
  { name: 'dbos-queue', module: 'dbos', options: { form: 'queue' }, isSequential: true },
  { name: PEER },
  { name: 'langgraph-sync', module: PEER, options: { durability: 'sync' } },
  { name: 'langchain', module: PEER, options: CREATE_AGENT },
  { name: 'langchain-sync', module: PEER, options: { ...CREATE_AGENT, durability: 'sync' } },
  { name: 'mastra', isSequential: true },
  { name: 'ai-sdk', isSequential: true },
];

const startAll = async (stack, compact, providerUrl, databases) => {
  const subjects = [await startSubject(OURS, { gatewayUrl: stack.gatewayUrl() })];
  const own = await startSubject(OURS, { gatewayUrl: compact.gatewayUrl() }, { label: COMPACT });
  subjects.push({ ...own, stack: compact });
  for (const { name, module, isSequential, options } of PEERS) {
    const opened = { ...options, providerUrl, databaseUrl: databases.url(name) };
    const subject = await startSubject(module ?? name, opened, { label: name });
    subjects.push({ ...subject, isSequential });
  }
  subjects.push(await startSubject(BARE, { providerUrl }));
  return subjects;
};

/**
 * The same number of turns for every subject, with and without tools: connections, prepared
 * statements, compiled code.
 */
const warmUp = async (subjects, turns) => {
  for (const subject of subjects)
    for (const tools of [0, 2]) {
      const lanes = subject.isSequential ? { sessions: 4, turns: turns * 2 } : { sessions: 32, turns };
      await subject.call('turns', { ...lanes, tools, tag: `warm${tools}` });
    }
};

const databaseCost = (stack) => costOf(familyOf(stack.read().engines.postgres.pid)).cpuMs;

/**
 * One block of turns of a subject, with the processor time of its processes and of PostgreSQL, and
 * the WAL that it writes.
 */
const runBlock = async (stack, subject, params) => {
  const measured = subject.stack ?? stack;
  const isOurs = subject.name === OURS || subject.name === COMPACT;
  const before = isOurs ? await readTurnCosts(measured) : undefined;
  const walBytes = await readWalBytes(measured.adminUrl());
  const database = databaseCost(measured);
  const { latencies, firsts, ms, cpuMs } = await subject.call('turns', params);
  const count = latencies.length;
  const databaseMs = (databaseCost(measured) - database) / count;
  const walKiB = ((await readWalBytes(measured.adminUrl())) - walBytes) / count / 1_024;
  const costs = before && turnCostsBetween(before, await readTurnCosts(measured), count);
  const ownMs = costs
    ? costs.processors.filter(({ name }) => name !== 'postgres').reduce((sum, one) => sum + one.cpuMs, 0)
    : cpuMs / count;
  return { latencies, firsts, rate: (count / ms) * 1_000, ownMs, databaseMs, walKiB, costs };
};

const runScenario = async (stack, subjects, scenario, { rounds, turns, tag }) => {
  const results = new Map(subjects.map(({ name }) => [name, []]));
  // The round before the first is this scenario's own warm-up.
  for (let round = -1; round < rounds; round += 1)
    for (let i = 0; i < subjects.length; i += 1) {
      const subject = subjects[(i + round + subjects.length) % subjects.length];
      const lanes = { turns: turns[scenario.sessions], turnsPerSession: TURNS_PER_SESSION };
      const block = await runBlock(stack, subject, { ...scenario, ...lanes, tag: `${tag}r${round + 1}` });
      if (round >= 0) results.get(subject.name).push(block);
    }
  return results;
};

const toRow = (scenario, subject, blocks) => {
  const costs = blocks.flatMap((block) => block.costs ?? []);
  const later = blocks.flatMap(({ latencies, firsts }) => latencies.filter((_, i) => !firsts[i]));
  const first = blocks.flatMap(({ latencies, firsts }) => latencies.filter((_, i) => firsts[i]));
  return {
    ...scenario,
    subject,
    ms: summarize(blocks.flatMap(({ latencies }) => latencies)),
    first: summarize(first),
    later: summarize(later),
    turnsPerSecond: summarize(blocks.map(({ rate }) => rate)).p50,
    ownMs: median(blocks.map(({ ownMs }) => ownMs)),
    databaseMs: median(blocks.map(({ databaseMs }) => databaseMs)),
    walKiB: median(blocks.map(({ walKiB }) => walKiB)),
    // For ratios of the same round.
    rounds: blocks.map(({ latencies, rate }) => ({ p50: median(latencies), rate })),
    ...(costs.length > 0 && { costs: summarizeTurnCosts(costs) }),
  };
};

/**
 * Measures milliseconds, processor time and turns a second, against one provider. The subjects are
 * Antiphon as `npm start` runs it, the same in its compact form, its peers, and the provider calls
 * alone. The second form has a stack of its own; the peers share PostgreSQL with the first.
 */
export const benchTurn = async ({ stack, providerUrl, quick }) => {
  const databases = await createDatabases(
    stack.adminUrl(),
    PEERS.map(({ name }) => name),
  );
  const size = quick ? 'quick' : 'full';
  let subjects = [];
  let compact;
  try {
    compact = await startStack(providerUrl, ['--compact']);
    subjects = await startAll(stack, compact, providerUrl, databases);
    await warmUp(subjects, WARM_UP[size]);
    const rows = [];
    for (const [index, scenario] of SCENARIOS.entries()) {
      const plan = { rounds: ROUNDS[size], turns: TURNS[size], tag: `s${index}` };
      const taking = subjects.filter(({ isSequential }) => scenario.sessions === 1 || !isSequential);
      for (const [subject, blocks] of await runScenario(stack, taking, scenario, plan))
        rows.push(toRow(scenario, subject, blocks));
    }
    return rows;
  } finally {
    for (const subject of subjects) await subject.close();
    await compact?.stop();
    await databases.drop();
  }
};
