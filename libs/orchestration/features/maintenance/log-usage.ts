import { causedError } from '@antiphon/contracts/causes';
import type pg from 'pg';
import type { AntiphonConfig } from '@antiphon/config';
import { acrossWorkspaces, translateDatabaseError } from '@antiphon/database';
import { exhausted, sleep } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { observeGauges } from '@antiphon/observability';

export interface LogUsageDeps {
  readonly pool: pg.Pool;
  readonly config: Pick<AntiphonConfig, 'retention'>;
  readonly logger: Logger;
}

/** Time between two counts, ms: new events count after it. */
const COUNT_MS = 10_000;
/** Number of counts after which all events are counted again: archives take events out. */
const COUNTS_OF_NEW = 360;
/** Positions of one statement. */
const STEP = 100_000;
/** Bytes of a row besides its data: ids, hash, times and its entries of indexes. */
const ROW_BYTES = 400;
const GAUGES = {
  'antiphon.log.bytes': 'Bytes of all events in the log.',
  'antiphon.log.largest_workspace.bytes': 'Bytes of the events of the largest workspace.',
  'antiphon.log.full_workspaces': 'Workspaces over the quota of the log, which take no new work.',
} as const;

const HEAD_SQL = 'select antiphon_head_position() as head';
const COUNT_SQL = `select workspace, sum(pg_column_size(data) + pg_column_size(metadata) + ${ROW_BYTES}) as bytes
  from events where position > $1 and position <= $2 group by workspace`;

/**
 * Counts the bytes of each workspace's events in the log, as they are stored. New work is refused
 * while a workspace has more than its quota. Requests that end, cancel, erase or read work are
 * served.
 */
export class LogUsage {
  private bytes = new Map<string, number>();
  private position = 0;
  private counts = 0;

  constructor(private readonly deps: LogUsageDeps) {}

  private get limit(): number {
    return this.deps.config.retention.maxLogBytes;
  }

  /** Counts again until the signal aborts. A failure is logged, and the former count stays. */
  async run(signal: AbortSignal): Promise<void> {
    const stopObserving = observeGauges(GAUGES, (observe) => {
      const all = [...this.bytes.values()];
      observe(
        'antiphon.log.bytes',
        all.reduce((sum, bytes) => sum + bytes, 0),
      );
      observe('antiphon.log.largest_workspace.bytes', Math.max(0, ...all));
      observe('antiphon.log.full_workspaces', all.filter((bytes) => bytes >= this.limit).length);
    });
    while (!signal.aborted) {
      await this.count().catch((err: unknown) => this.deps.logger.warn({ err }, 'log bytes not counted'));
      await sleep(COUNT_MS, signal).catch(() => undefined);
    }
    stopObserving();
  }

  /** Counts the events since the last count, and now and then all of them. */
  async count(): Promise<void> {
    const isWhole = this.counts++ % COUNTS_OF_NEW === 0;
    const bytes = isWhole ? new Map<string, number>() : new Map(this.bytes);
    const db = acrossWorkspaces(this.deps.pool);
    try {
      const head = Number((await db.query<{ head: string }>(HEAD_SQL)).rows[0]?.head ?? 0);
      for (let from = isWhole ? 0 : this.position; from < head; from += STEP) {
        const values = [from, Math.min(from + STEP, head)];
        const { rows } = await db.query<{ workspace: string; bytes: string }>(COUNT_SQL, values);
        for (const row of rows) bytes.set(row.workspace, (bytes.get(row.workspace) ?? 0) + Number(row.bytes));
      }
      this.bytes = bytes;
      this.position = head;
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }

  /** Throws `LOG.QUOTA` while the events of a workspace have more bytes than its quota. */
  requireRoom(workspace: string): void {
    const value = this.bytes.get(workspace) ?? 0;
    const { limit } = this;
    if (value < limit) return;
    const data = { quota: 'max_log_bytes', limit, value };
    throw causedError(exhausted, 'LOG.QUOTA', { kind: 'log_quota', bytes: value, limit }, data);
  }
}
