import { createDatabases } from '../lib/databases.mjs';
import { startSubject } from '../lib/processes.mjs';
import { summarize } from '../lib/stats.mjs';
import { readTurnCosts, summarizeTurnCosts, turnCostsBetween } from '../lib/turn-cost.mjs';

const SCENARIOS = [
  { name: 'no tools, one after another', tools: 0, sessions: 1 },
  { name: 'no tools, 32 sessions', tools: 0, sessions: 32 },
  { name: 'two tool calls, one after another', tools: 2, sessions: 1 },
  { name: 'two tool calls, 32 sessions', tools: 2, sessions: 32 },
];
const TURNS = { full: { 1: 50, 32: 10 }, quick: { 1: 10, 32: 2 } };

/**
 * Turns a lane, 32 lanes: as much work before the first measurement as makes services that run for
 * days what they are.
 */
const WARM_UP = { full: 30, quick: 4 };

/**
 * The same number of turns for every subject, with and without tools: connections, prepared
 * statements, compiled code.
 */
const warmUp = async (subjects, turns) => {
  for (const subject of subjects)
    for (const tools of [0, 2])
      await subject.call('turns', { tools, sessions: 32, turns, tag: `warm${tools}` });
};

const runScenario = async (stack, subjects, scenario, { rounds, turns, tag }) => {
  const results = new Map(subjects.map(({ name }) => [name, { latencies: [], rates: [], costs: [] }]));
  // The round before the first is this scenario's own warm-up.
  for (let round = -1; round < rounds; round += 1) {
    for (let i = 0; i < subjects.length; i += 1) {
      const subject = subjects[(i + round + subjects.length) % subjects.length];
      const params = { ...scenario, turns: turns[scenario.sessions], tag: `${tag}r${round + 1}` };
      const before = subject.name === 'antiphon-turn' ? await readTurnCosts(stack) : undefined;
      const { latencies, ms } = await subject.call('turns', params);
      if (round < 0) continue;
      const result = results.get(subject.name);
      result.latencies.push(latencies);
      result.rates.push((latencies.length / ms) * 1_000);
      if (before !== undefined)
        result.costs.push(turnCostsBetween(before, await readTurnCosts(stack), latencies.length));
    }
  }
  return results;
};

/**
 * Measures milliseconds a turn and turns a second, against one provider and one PostgreSQL server.
 * The subjects are Antiphon, LangGraph.js with its PostgreSQL checkpointer, and the provider calls
 * alone.
 */
export const benchTurn = async ({ stack, providerUrl, quick }) => {
  const databases = await createDatabases(stack.adminUrl(), ['langgraph']);
  const subjects = [];
  try {
    const databaseUrl = databases.url('langgraph');
    subjects.push(await startSubject('antiphon-turn', { gatewayUrl: stack.gatewayUrl() }));
    subjects.push(await startSubject('langgraph', { providerUrl, databaseUrl }));
    subjects.push(await startSubject('bare-provider', { providerUrl }));
    await warmUp(subjects, WARM_UP[quick ? 'quick' : 'full']);
    const rows = [];
    for (const [index, scenario] of SCENARIOS.entries()) {
      const plan = { rounds: quick ? 1 : 4, turns: TURNS[quick ? 'quick' : 'full'], tag: `s${index}` };
      for (const [subject, { latencies, rates, costs }] of await runScenario(stack, subjects, scenario, plan))
        rows.push({
          ...scenario,
          subject,
          ms: summarize(latencies.flat()),
          turnsPerSecond: summarize(rates).p50,
          ...(costs.length > 0 && { costs: summarizeTurnCosts(costs) }),
        });
    }
    return rows;
  } finally {
    for (const subject of subjects) await subject.close();
    await databases.drop();
  }
};
