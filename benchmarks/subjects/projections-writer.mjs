// Appends as the services do: version-checked, hashed, with a notification over NATS after each
// commit.
import { createPool } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import { connectNats, createLogNotifier } from '@antiphon/messaging';
import { silentLogger } from '@antiphon/observability';
import { setTimeout as wait } from 'node:timers/promises';
import { newSession, runAppends, turnAppends } from '../lib/turn-events.mjs';

const SESSIONS = 50;
const BULK = 100;

const countOf = (streams) => streams.reduce((sum, { events }) => sum + events.length, 0);

export const open = async ({ databaseUrl, nats }) => {
  const link = await connectNats({ ...nats, service: 'bench', logger: silentLogger });
  const pool = createPool({ url: databaseUrl, applicationName: 'bench' });
  const store = createPostgresEventStore(pool, { onAppended: createLogNotifier(link) });
  const append = (streams) => store.append({ workspace: 'default', streams });

  /**
   * Whole turns, a hundred at a time and each stream once in an append; answers how many events
   * there are.
   */
  const fill = async ({ turns, runs }) => {
    let events = 0;
    const lanes = Array.from({ length: BULK }, newSession);
    for (let done = 0; done < turns; done += BULK) {
      const steps = lanes.map((session) => turnAppends(session));
      for (let step = 0; step < Math.max(...steps.map(({ length }) => length)); step += 1)
        events += await together(steps.flatMap((one) => (one[step] ? [one[step]] : [])));
    }
    for (let done = 0; done < runs; done += BULK) {
      const steps = Array.from({ length: BULK }, runAppends);
      for (const step of [0, 1]) events += await together(steps.map((one) => one[step]));
    }
    return events;
  };
  // The store gathers what is appended side by side into batches.
  const together = async (appends) => {
    await Promise.all(appends.map(append));
    return appends.reduce((sum, streams) => sum + countOf(streams), 0);
  };

  /**
   * Turns of fifty sessions at a steady rate; what is late is made up for. Answers events a second.
   */
  const steady = async ({ eventsPerSecond, seconds }) => {
    const sessions = Array.from({ length: SESSIONS }, newSession);
    const waiting = [];
    const open = [];
    let events = 0;
    const began = performance.now();
    for (let n = 0; performance.now() - began < seconds * 1_000;) {
      if (waiting.length === 0) waiting.push(...turnAppends(sessions[n++ % SESSIONS]));
      const next = waiting.shift();
      events += countOf(next);
      // One turn's appends follow one another; those of others continue next to it.
      if (waiting.length > 0 && next.length > 1) open.push(append(next));
      else await append(next);
      const due = (events / eventsPerSecond) * 1_000 - (performance.now() - began);
      if (due > 1) await wait(due);
    }
    await Promise.all(open);
    return (events / (performance.now() - began)) * 1_000;
  };

  return {
    fill,
    steady,
    head: () => store.headPosition(),
    close: async () => {
      await store.close();
      await pool.end();
      await link.drain();
    },
  };
};
