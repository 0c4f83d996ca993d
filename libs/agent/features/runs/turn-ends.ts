import type pg from 'pg';
import { TURN_ENDS_SQL, sessionStream } from '@antiphon/contracts/agent';
import { translateDatabaseError } from '@antiphon/database';
import { onLogNotification } from '@antiphon/messaging';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';

/** Waits for turns to end, wherever they are driven. */
export interface TurnEndings {
  /** Resolves once the log has the turn's terminal event; rejects with the signal's reason. */
  ended(turn: TurnRef, signal: AbortSignal): Promise<void>;
  /** This process has just committed an end in that session. */
  note(sessionId: string): void;
  close(): void;
}

export interface TurnRef {
  readonly workspace: string;
  readonly sessionId: string;
  readonly turnId: string;
}

interface Waiter {
  readonly turn: TurnRef;
  readonly resolve: () => void;
}

/** How often to look without a hint, which may be lost. */
const POLL_MS = 1_000;
/** Hints come with every append of anybody; one look serves all who wait. */
const LOOK_AT_MOST_EVERY_MS = 200;

const ENDED_SQL = `select stream_id, data ->> 'turnId' as turn_id from events
  where workspace = any ($1) and stream_id = any ($2) and type in (${TURN_ENDS_SQL})`;

const endedTurns = async (pool: pg.Pool, turns: readonly TurnRef[]): Promise<ReadonlySet<string>> => {
  const values = [
    [...new Set(turns.map(({ workspace }) => workspace))],
    [...new Set(turns.map(({ sessionId }) => sessionStream(sessionId)))],
  ];
  try {
    const query = { name: 'agent_ended_turns', text: ENDED_SQL, values };
    const { rows } = await pool.query<{ turn_id: string }>(query);
    return new Set(rows.map(({ turn_id }) => turn_id));
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

export interface TurnEndingsOptions {
  readonly pool: pg.Pool;
  readonly nats: NatsLink;
  readonly logger: Logger;
}

export const createTurnEndings = ({ pool, nats, logger }: TurnEndingsOptions): TurnEndings => {
  const waiters = new Set<Waiter>();
  let timer: NodeJS.Timeout | undefined;
  let dueAt = Infinity;
  let lookedAt = -Infinity;

  const look = async (): Promise<void> => {
    lookedAt = performance.now();
    const asked = [...waiters];
    try {
      const ended = await endedTurns(
        pool,
        asked.map(({ turn }) => turn),
      );
      for (const waiter of asked) if (ended.has(waiter.turn.turnId)) waiter.resolve();
    } catch (error) {
      logger.warn({ err: error }, 'ends of turns could not be looked for; they will be again');
    }
    lookWithin(POLL_MS);
  };
  /** Looks that soon, unless a look is due sooner already. */
  const lookWithin = (ms: number): void => {
    const at = performance.now() + ms;
    if (waiters.size === 0 || at >= dueAt) return;
    clearTimeout(timer);
    dueAt = at;
    timer = setTimeout(() => {
      dueAt = Infinity;
      void look();
    }, ms);
  };
  const unsubscribe = onLogNotification(nats, () =>
    lookWithin(Math.max(0, lookedAt + LOOK_AT_MOST_EVERY_MS - performance.now())),
  );

  return {
    ended: (turn, signal) =>
      new Promise((resolve, reject) => {
        const settle = (then: () => void) => (): void => {
          waiters.delete(waiter);
          signal.removeEventListener('abort', abort);
          then();
        };
        const abort = settle(() => reject(signal.reason as Error));
        const waiter: Waiter = { turn, resolve: settle(resolve) };
        if (signal.aborted) return reject(signal.reason as Error);
        signal.addEventListener('abort', abort, { once: true });
        waiters.add(waiter);
        // It may have ended before anybody waited.
        lookWithin(0);
      }),
    note: (sessionId) => {
      if ([...waiters].some(({ turn }) => turn.sessionId === sessionId)) lookWithin(0);
    },
    close: () => {
      clearTimeout(timer);
      unsubscribe();
    },
  };
};
