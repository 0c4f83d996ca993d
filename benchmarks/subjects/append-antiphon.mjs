// Antiphon's log: expected versions, event ids, hash chains, gapless positions, owners checked, one
// commit a batch.
import { randomUUID } from 'node:crypto';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import { uuidIds } from '@antiphon/observability';
import { appendLoop, PAYLOAD } from '../lib/append-loop.mjs';

const event = () => ({
  eventId: uuidIds.next(),
  type: 'TurnRequested',
  schemaVersion: 1,
  data: PAYLOAD,
  metadata: { correlationId: 'bench', service: 'agent' },
});

export const open = async ({ databaseUrl }) => {
  const pool = createPool({ url: databaseUrl, role: 'antiphon_agent', applicationName: 'bench' });
  const store = createPostgresEventStore(pool);
  return {
    append: (params) => {
      const streams = Array.from({ length: params.writers }, () => ({
        id: `session-${randomUUID()}`,
        version: 0,
      }));
      return appendLoop(async (writer, count) => {
        const stream = streams[writer];
        const events = Array.from({ length: count }, event);
        const one = { streamId: stream.id, expectedVersion: stream.version, events };
        const { versions } = await store.append({ workspace: 'default', streams: [one] });
        stream.version = versions[0];
      }, params);
    },
    close: async () => {
      await store.close();
      await pool.end();
    },
  };
};
