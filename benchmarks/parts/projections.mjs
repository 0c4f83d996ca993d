import { createDatabases } from '../lib/databases.mjs';
import { startSubject } from '../lib/processes.mjs';
import { summarize } from '../lib/stats.mjs';

const RATE = 500;
const PLAN = {
  full: { turns: 10_000, runs: 10_000, seconds: 30, rebuilds: 3 },
  quick: { turns: 1_000, runs: 2_000, seconds: 5, rebuilds: 1 },
};

const best = (results) => results.reduce((one, other) => (other.ms < one.ms ? other : one));

/**
 * Measures the lag of projections while a process appends 500 events a second and notifies over
 * NATS. It also measures how fast they are rebuilt and compared during live traffic.
 */
export const benchProjections = async ({ stack, quick }) => {
  const { turns, runs, seconds, rebuilds } = PLAN[quick ? 'quick' : 'full'];
  const databases = await createDatabases(stack.adminUrl(), ['projections']);
  const subjects = [];
  try {
    await databases.migrate('projections');
    const options = { databaseUrl: databases.url('projections'), nats: stack.nats() };
    const writer = await startSubject('projections-writer', options);
    subjects.push(writer);
    const reader = await startSubject('projections-reader', options);
    subjects.push(reader);
    await reader.call('start');
    await writer.call('fill', { turns, runs });
    await reader.call('waitForPosition', await writer.call('head'));
    await writer.call('steady', { eventsPerSecond: RATE, seconds: 3 });
    await reader.call('waitForPosition', await writer.call('head'));
    await reader.call('lags');
    const eventsPerSecond = await writer.call('steady', { eventsPerSecond: RATE, seconds });
    await reader.call('waitForPosition', await writer.call('head'));
    const lags = Object.entries(await reader.call('lags')).filter(([, samples]) => samples.length > 0);
    const rounds = [];
    for (let round = 0; round < rebuilds; round += 1) rounds.push(await reader.call('rebuild'));
    return {
      wantedPerSecond: RATE,
      eventsPerSecond,
      lag: lags.map(([name, samples]) => ({ name, ms: summarize(samples) })),
      rebuild: rounds[0].map((_, index) => best(rounds.map((round) => round[index]))),
    };
  } finally {
    for (const subject of subjects) await subject.close();
    await databases.drop();
  }
};
