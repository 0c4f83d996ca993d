import { createDatabases } from '../lib/databases.mjs';
import { startSubject } from '../lib/processes.mjs';
import { median, summarize } from '../lib/stats.mjs';

const WORKERS = 64;
const PLAN = { full: { count: 3_000, rounds: 3 }, quick: { count: 500, rounds: 1 } };

/** Claims of external workers in one process: milliseconds a claim, and claims a second. */
export const benchTasks = async ({ stack, quick }) => {
  const { count, rounds } = PLAN[quick ? 'quick' : 'full'];
  const databases = await createDatabases(stack.adminUrl(), ['tasks']);
  let subject;
  try {
    await databases.migrate('tasks');
    subject = await startSubject('task-claims', { databaseUrl: databases.url('tasks'), nats: stack.nats() });
    await subject.call('claim', { count: 200, workers: WORKERS });
    const [durations, rates] = [[], []];
    for (let round = 0; round < rounds; round += 1) {
      const result = await subject.call('claim', { count, workers: WORKERS });
      durations.push(...result.durations);
      rates.push((result.durations.length / result.ms) * 1_000);
    }
    return { workers: WORKERS, claimsPerSecond: median(rates), ms: summarize(durations) };
  } finally {
    await subject?.close();
    await databases.drop();
  }
};
