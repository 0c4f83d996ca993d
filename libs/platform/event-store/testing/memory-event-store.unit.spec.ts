import { describe } from '@jest/globals';
import { createMemoryEventStore, createMemoryLeaseStore } from './memory-event-store.js';
import { eventStoreContract } from '@antiphon/testing';

describe('in-memory event store', () =>
  eventStoreContract(
    async () => {
      const leases = createMemoryLeaseStore();
      const store = createMemoryEventStore({ leases, owns: (category) => category === 'session' });
      return {
        agent: store,
        metering: store.forOwner((category) => category === 'budget'),
        leases,
        close: async () => undefined,
      };
    },
    { runs: 300 },
  ));
