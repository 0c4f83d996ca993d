// Emmett's PostgreSQL event store, with an expected version on each append.
import { randomUUID } from 'node:crypto';
import { getPostgreSQLEventStore } from '@event-driven-io/emmett-postgresql';
import { appendLoop, PAYLOAD } from '../lib/append-loop.mjs';

export const open = async ({ databaseUrl }) => {
  const store = getPostgreSQLEventStore(databaseUrl);
  return {
    append: (params) => {
      const streams = Array.from({ length: params.writers }, () => ({ id: `session-${randomUUID()}` }));
      return appendLoop(async (writer, count) => {
        const stream = streams[writer];
        const events = Array.from({ length: count }, () => ({ type: 'Turn', data: PAYLOAD }));
        const expected = stream.version === undefined ? {} : { expectedStreamVersion: stream.version };
        const result = await store.appendToStream(stream.id, events, expected);
        stream.version = result.nextExpectedStreamVersion;
      }, params);
    },
    close: () => store.close(),
  };
};
