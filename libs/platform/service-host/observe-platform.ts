import type pg from 'pg';
import { observeGauges } from '@antiphon/observability';
import type { HealthRegistry } from './health-registry.js';

interface Observed {
  readonly pool: pg.Pool;
  readonly health: HealthRegistry;
}

/** What every service tells of its dependencies, whenever its metrics are read; answers how to stop. */
export const observePlatform = ({ pool, health }: Observed): (() => void) =>
  observeGauges(
    {
      antiphon_dependency_up: '1 while a dependency of this process passes its health check, else 0',
      antiphon_database_connections:
        'Connections to PostgreSQL: open, idle among them; waiting: who waits for one',
    },
    async (report) => {
      report('antiphon_database_connections', pool.totalCount, { state: 'open' });
      report('antiphon_database_connections', pool.idleCount, { state: 'idle' });
      report('antiphon_database_connections', pool.waitingCount, { state: 'waiting' });
      const { checks } = await health.report();
      for (const { name, healthy } of checks)
        report('antiphon_dependency_up', healthy ? 1 : 0, { dependency: name });
    },
  );
