import { sessionStream } from '@antiphon/contracts/agent';
import { inWorkspace } from '@antiphon/database';
import type { Pool } from 'pg';

/** Versions of the event streams of sessions. A session without events is absent. */
export type ReadVersions = (
  workspace: string,
  sessionIds: readonly string[],
) => Promise<ReadonlyMap<string, number>>;

/** Creates the reader of versions in PostgreSQL: one query for all sessions. */
export const createVersionReader =
  (pool: Pool): ReadVersions =>
  async (workspace, sessionIds) => {
    const sessions = new Map(sessionIds.map((id) => [sessionStream(id), id]));
    const { rows } = await inWorkspace(pool, workspace).query<{ stream_id: string; version: string }>({
      name: 'antiphon_session_versions',
      text: 'select stream_id, version from stream_heads where workspace = $1 and stream_id = any ($2)',
      values: [workspace, [...sessions.keys()]],
    });
    return new Map(rows.map((row) => [sessions.get(row.stream_id) ?? '', Number(row.version)]));
  };

/** A session whose log is polled while no message of it arrives. */
export interface PolledSession {
  readonly workspace: string;
  readonly sessionId: string;
  /** Returns true while a reader waits for frames, which may get lost. */
  readonly isWaiting: () => boolean;
  /** Called after a poll. `hasGrown` is true if the event stream has new events. */
  readonly onPolled: (hasGrown: boolean) => void;
}

interface PollState {
  version: number;
  intervalMs: number;
  dueAt: number;
}

/** First interval of a quiet session, ms. It doubles while nothing is found. */
export const MIN_POLL_MS = 1_000;
const MAX_POLL_MS = 30_000;
/** Maximum number of event streams in one query. */
const MAX_BATCH = 1_000;

/**
 * Polls the event streams of quiet sessions: one query for all sessions of a workspace that are
 * due. The interval of a session doubles from 1 s to 30 s while its stream does not grow.
 */
export class LogPoller {
  readonly #readVersions: ReadVersions;
  readonly #now: () => number;
  readonly #onError: (error: unknown) => void;
  readonly #states = new Map<PolledSession, PollState>();
  readonly #timer: NodeJS.Timeout;
  #isPolling = false;

  constructor(readVersions: ReadVersions, now: () => number, onError: (error: unknown) => void) {
    this.#readVersions = readVersions;
    this.#now = now;
    this.#onError = onError;
    this.#timer = setInterval(() => void this.#poll(), MIN_POLL_MS).unref();
  }

  add(session: PolledSession): void {
    this.#states.set(session, { version: 0, intervalMs: MIN_POLL_MS, dueAt: this.#now() + MIN_POLL_MS });
  }

  /** Starts the interval of a session again, because a message or a reader of it has come. */
  postpone(session: PolledSession): void {
    const state = this.#states.get(session);
    if (!state) return;
    state.intervalMs = MIN_POLL_MS;
    state.dueAt = this.#now() + MIN_POLL_MS;
  }

  remove(session: PolledSession): void {
    this.#states.delete(session);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#states.clear();
  }

  async #poll(): Promise<void> {
    if (this.#isPolling) return;
    this.#isPolling = true;
    try {
      const due = [...this.#states].filter(
        ([session, { dueAt }]) => dueAt <= this.#now() && session.isWaiting(),
      );
      for (const [workspace, sessions] of Map.groupBy(due, ([session]) => session.workspace))
        for (let from = 0; from < sessions.length; from += MAX_BATCH)
          await this.#pollBatch(workspace, sessions.slice(from, from + MAX_BATCH));
    } catch (error) {
      this.#onError(error);
    } finally {
      this.#isPolling = false;
    }
  }

  async #pollBatch(
    workspace: string,
    batch: readonly (readonly [PolledSession, PollState])[],
  ): Promise<void> {
    for (const [, state] of batch) {
      state.dueAt = this.#now() + state.intervalMs;
      state.intervalMs = Math.min(2 * state.intervalMs, MAX_POLL_MS);
    }
    const versions = await this.#readVersions(
      workspace,
      batch.map(([{ sessionId }]) => sessionId),
    );
    for (const [session, state] of batch) {
      if (!this.#states.has(session)) continue;
      const version = versions.get(session.sessionId) ?? 0;
      const hasGrown = version > state.version;
      state.version = version;
      if (hasGrown) this.postpone(session);
      session.onPolled(hasGrown);
    }
  }
}
