import type pg from 'pg';
import { acrossWorkspaces, ALL_WORKSPACES } from '@antiphon/database';
import { repeatEvery } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { PastSnapshots, SNAPSHOT_EVERY, strideOf, thinOut } from './past-snapshots.js';
import type { ProjectionDefinition } from './projection-definition.js';
import { readProgress } from './projection-progress.js';

/** Interval of the looks at the checkpoints, ms. */
const LOOK_MS = 2_000;

export interface SnapshotMakerOptions {
  readonly pool: pg.Pool;
  readonly definitions: readonly ProjectionDefinition[];
  readonly logger: Logger;
  /** Minimum number of positions between two snapshots. */
  readonly every?: number;
}

interface Watched {
  readonly definition: ProjectionDefinition;
  readonly snapshots: PastSnapshots;
  /** Checkpoint from which the next snapshot is due. */
  dueAt: number;
}

/**
 * Keeps snapshots of projections for reads of the past, while the projections follow the log.
 * Several processes may do so: a snapshot of a position is stored once.
 */
export class SnapshotMaker {
  readonly #options: SnapshotMakerOptions;
  readonly #watched: readonly Watched[];

  constructor(options: SnapshotMakerOptions) {
    this.#options = options;
    this.#watched = options.definitions.map((definition) => ({
      ...{ definition, snapshots: new PastSnapshots(definition), dueAt: 0 },
    }));
  }

  /** Makes snapshots until the signal aborts. */
  follow(signal: AbortSignal): Promise<void> {
    return repeatEvery(() => this.#look(), LOOK_MS, signal);
  }

  async #look(): Promise<void> {
    for (const watched of this.#watched)
      try {
        await this.#makeDue(watched);
      } catch (error) {
        const fields = { err: error, projection: watched.definition.name };
        this.#options.logger.warn(fields, 'projection snapshot failed');
      }
  }

  /** Makes the snapshots that are due, and deletes those that are too many or of no use. */
  async makeAll(): Promise<void> {
    for (const watched of this.#watched) await this.#makeDue(watched);
  }

  async #makeDue(watched: Watched): Promise<void> {
    const { pool, every = SNAPSHOT_EVERY } = this.#options;
    const { definition, snapshots } = watched;
    const { position, head } = await readProgress(pool, definition);
    if (position < watched.dueAt) return;
    const queries = acrossWorkspaces(pool);
    const before = await snapshots.list(queries);
    const newest = before.findLast(({ scope }) => scope === ALL_WORKSPACES);
    const stride = strideOf(head, newest?.bytes ?? 0, every);
    const bucket = Math.floor(position / stride);
    if (bucket > Math.floor((newest?.position ?? 0) / stride)) await snapshots.saveLive(queries);
    await snapshots.keep(queries, null, thinOut(await snapshots.list(queries), head, every));
    watched.dueAt = (bucket + 1) * stride;
  }
}
