// Appends sessions of one turn in bulk, as the services append them.
import { createPool } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import { newSession, turnAppends } from '../lib/turn-events.mjs';

/** Sessions that are appended together. The store gathers what is appended side by side. */
const TOGETHER = 200;

export const open = async ({ databaseUrl }) => {
  const pool = createPool({ url: databaseUrl, applicationName: 'bench' });
  const store = createPostgresEventStore(pool);
  const together = (appends) =>
    Promise.all(appends.map((streams) => store.append({ workspace: 'default', streams })));

  return {
    fill: async (sessions) => {
      for (let done = 0; done < sessions; done += TOGETHER) {
        const count = Math.min(TOGETHER, sessions - done);
        const steps = Array.from({ length: count }, () => turnAppends(newSession()));
        for (const step of [0, 1, 2]) await together(steps.map((one) => one[step]));
      }
    },
    close: async () => {
      await store.close();
      await pool.end();
    },
  };
};
