// The queue of tasks as an agent process has it: external workers claim, and no model is called.
import { createPastReads } from '@antiphon/agent-features/projections';
import { ExternalClaims, Tasks, TasksRuntime } from '@antiphon/orchestration-features/tasks';
import { createPool } from '@antiphon/database';
import { createLeaseStore, createPostgresEventStore } from '@antiphon/event-store';
import { connectNats, createLogNotifier } from '@antiphon/messaging';
import { silentLogger, systemClock, uuidIds } from '@antiphon/observability';

const workspace = 'default';
const actor = { caller: 'key/bench', role: 'member', agentId: null };
const SENDERS = 100;

export const open = async ({ databaseUrl, nats }) => {
  const link = await connectNats({ ...nats, service: 'bench', logger: silentLogger });
  const pool = createPool({ url: databaseUrl, role: 'antiphon_agent', applicationName: 'bench', max: 12 });
  const store = createPostgresEventStore(pool, { onAppended: createLogNotifier(link) });
  const { services } = new TasksRuntime({
    config: { agents: [], bindings: [], plugins: [] },
    leases: createLeaseStore(pool),
    owner: 'bench',
    directory: { load: async () => null },
    past: createPastReads(pool),
    ...{ store, pool, nats: link, logger: silentLogger, clock: systemClock, ids: uuidIds },
  });
  const [tasks, claims] = [new Tasks(services), new ExternalClaims(services)];

  const send = async (count) => {
    const spec = { prompt: 'build it', priority: 5, capabilities: [], worker: 'external' };
    let left = count;
    const one = async () => {
      while (left-- > 0) await tasks.createTask({ workspace, spec, actor });
    };
    await Promise.all(Array.from({ length: SENDERS }, one));
  };
  /** Claims every task. Returns the time of each claim and of all together, ms. */
  const claim = async ({ count, workers }) => {
    await send(count);
    const durations = [];
    const work = async () => {
      for (;;) {
        const startedAt = performance.now();
        const { claim: claimed } = await claims.claimTask({ workspace, capabilities: [], actor });
        if (!claimed) return;
        durations.push(performance.now() - startedAt);
      }
    };
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: workers }, work));
    return { durations, ms: performance.now() - startedAt };
  };
  return {
    claim,
    close: async () => {
      await store.close();
      await link.drain();
      await pool.end();
    },
  };
};
