import { describe } from '@jest/globals';
import { createPool } from '@antiphon/database';
import { createLeaseStore, createPostgresEventStore } from '@antiphon/event-store';
import { createTestDatabase, eventStoreContract, type LogUnderTest } from '@antiphon/testing';

const makeLog = async (): Promise<LogUnderTest> => {
  const database = await createTestDatabase();
  const agentPool = createPool({ url: database.urlFor('agent'), applicationName: 'spec-agent', max: 4 });
  const meteringPool = createPool({
    url: database.urlFor('metering'),
    applicationName: 'spec-metering',
    max: 2,
  });
  const stores = [createPostgresEventStore(agentPool), createPostgresEventStore(meteringPool)] as const;
  return {
    agent: stores[0],
    metering: stores[1],
    leases: createLeaseStore(agentPool),
    close: async () => {
      await Promise.all(stores.map((store) => store.close()));
      await Promise.all([agentPool.end(), meteringPool.end()]);
      await database.drop();
    },
  };
};

describe('PostgreSQL event store', () => eventStoreContract(makeLog));
