// The queue of tasks as an agent process has it: external workers claim, and no model is called.
import { createPastReads } from '@antiphon/agent-features/projections';
import {
  ExternalClaims,
  KnownAgents,
  OpenTasks,
  TaskStreams,
  Tasks,
} from '@antiphon/orchestration-features/tasks';
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
  const [clock, ids, directory] = [systemClock, uuidIds, { load: async () => null }];
  const streams = new TaskStreams({ store, ids, clock }, () => undefined);
  const queues = new OpenTasks({ pool, store, clock });
  const agents = new KnownAgents({ config: { agents: [], bindings: [], plugins: [] }, pool, directory });
  const tasks = new Tasks(streams, queues, agents, directory, createPastReads(pool), 10_000, ids, {
    addTo: (_, tasks) => tasks,
  });
  const claims = new ExternalClaims(streams, queues, createLeaseStore(pool), clock);

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
