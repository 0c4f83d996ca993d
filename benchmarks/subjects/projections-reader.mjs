// The projections of agent and memory, as their services run them, and their rebuild.
import { agentProjections } from '@antiphon/agent-features/projections';
import { createPool } from '@antiphon/database';
import { compareProjection, rebuildProjection, runProjection } from '@antiphon/event-store';
import { memoryProjections } from '@antiphon/memory-features/projections';
import { connectNats, onLogNotification } from '@antiphon/messaging';
import { meteringProjections } from '@antiphon/metering-features/projections';
import { silentLogger } from '@antiphon/observability';

const LIVE = [...agentProjections, ...memoryProjections];
const ALL = [...LIVE, ...meteringProjections];

/** Notes, for each event, how long after it was recorded the projection's commit was known here. */
const follow = (definition, { databaseUrl, link }) => {
  const pool = createPool({
    url: databaseUrl,
    applicationName: 'bench',
    role: `antiphon_${definition.service}`,
  });
  let lags = [];
  let waiting = [];
  const projection = runProjection({
    ...definition,
    pool,
    logger: silentLogger,
    subscribe: (wake, categories) => onLogNotification(link, wake, { categories }),
    handle: async (client, events) => {
      await definition.handle(client, events);
      waiting.push(...events.map(({ position, recordedAt }) => ({ position, at: Date.parse(recordedAt) })));
    },
  });
  const look = () => {
    const { position } = projection.status();
    if (waiting.length === 0 || waiting[0].position > position) return;
    const now = Date.now();
    const seen = waiting.filter((event) => event.position <= position);
    waiting = waiting.filter((event) => event.position > position);
    lags.push(...seen.map(({ at }) => now - at));
  };
  const timer = setInterval(look, 1);
  return {
    name: definition.name,
    waitForPosition: (position) => projection.waitForPosition(position),
    take: () => {
      const taken = lags;
      lags = [];
      return taken;
    },
    close: async () => {
      clearInterval(timer);
      await projection.stop();
      await pool.end();
    },
  };
};

export const open = async ({ databaseUrl, nats }) => {
  const link = await connectNats({ ...nats, service: 'bench', logger: silentLogger });
  const owner = createPool({ url: databaseUrl, applicationName: 'bench' });
  const running = [];

  const rebuilt = async (definition) => {
    const began = performance.now();
    const { events, heldMs } = await rebuildProjection(owner, definition);
    const ms = performance.now() - began;
    const compared = performance.now();
    const { differing, rows } = await compareProjection(owner, definition);
    const compareMs = performance.now() - compared;
    return { name: definition.name, events, heldMs, ms, compareMs, differing, rows };
  };

  return {
    start: () => void running.push(...LIVE.map((definition) => follow(definition, { databaseUrl, link }))),
    waitForPosition: (position) =>
      Promise.all(running.map((one) => one.waitForPosition(position))).then(() => undefined),
    /** Lags since the last time, in ms, by projection. */
    lags: () => Object.fromEntries(running.map((one) => [one.name, one.take()])),
    /** Each once, one after another. */
    rebuild: async () => {
      const results = [];
      for (const definition of ALL) results.push(await rebuilt(definition));
      return results;
    },
    close: async () => {
      await Promise.all(running.map((one) => one.close()));
      await owner.end();
      await link.drain();
    },
  };
};
