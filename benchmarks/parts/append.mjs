import { createDatabases } from '../lib/databases.mjs';
import { startSubject } from '../lib/processes.mjs';
import { summarize } from '../lib/stats.mjs';

const CONTENDERS = ['antiphon', 'raw', 'emmett'];
const SCENARIOS = [
  { name: '32 writers, one event each', writers: 32, perAppend: 1 },
  { name: 'one writer, one event', writers: 1, perAppend: 1 },
  { name: 'one writer, 500 events', writers: 1, perAppend: 500 },
];

/**
 * All contenders in turn, in another order each round, so that a slow moment of the machine affects
 * all of them.
 */
const runRounds = async (subjects, scenario, { rounds, seconds }) => {
  const results = new Map(CONTENDERS.map((name) => [name, { latencies: [], rates: [] }]));
  for (let round = -1; round < rounds; round += 1) {
    for (let i = 0; i < CONTENDERS.length; i += 1) {
      const name = CONTENDERS[(i + round + CONTENDERS.length) % CONTENDERS.length];
      const { latencies, events, ms } = await subjects
        .get(name)
        .call('append', { ...scenario, seconds: round < 0 ? 1 : seconds });
      if (round < 0) continue;
      results.get(name).latencies.push(latencies);
      results.get(name).rates.push((events / ms) * 1_000);
    }
  }
  return results;
};

/** Events a second and milliseconds an append, by scenario and contender. */
export const benchAppend = async ({ adminUrl, quick }) => {
  const databases = await createDatabases(adminUrl, CONTENDERS);
  const subjects = new Map();
  try {
    await databases.migrate('antiphon');
    for (const name of CONTENDERS)
      subjects.set(name, await startSubject(`append-${name}`, { databaseUrl: databases.url(name) }));
    const rows = [];
    for (const scenario of SCENARIOS) {
      const results = await runRounds(
        subjects,
        scenario,
        quick ? { rounds: 1, seconds: 1 } : { rounds: 4, seconds: 3 },
      );
      for (const [contender, { latencies, rates }] of results)
        rows.push({
          scenario: scenario.name,
          contender,
          eventsPerSecond: summarize(rates).p50,
          ms: summarize(latencies.flat()),
        });
    }
    return rows;
  } finally {
    for (const subject of subjects.values()) await subject.close();
    await databases.drop();
  }
};
