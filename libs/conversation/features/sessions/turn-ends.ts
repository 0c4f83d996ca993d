import type { Cause } from '@antiphon/contracts/causes';
import type pg from 'pg';
import type { z } from 'zod';
import { TURN_ENDS_SQL, sessionStream } from '@antiphon/contracts/agent';
import type { cancelTurn, submitTurn } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { acrossWorkspaces, translateDatabaseError } from '@antiphon/database';
import { readBackwards } from '@antiphon/event-store';
import type { EventStore, RecordedEvent } from '@antiphon/event-store';
import { bug } from '@antiphon/kernel';
import { onLogNotification } from '@antiphon/messaging';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { createToken } from '@antiphon/service-host';

/** Subject that tells the agent processes which session has just ended a turn of a task. */
export const TURN_END_SUBJECT = 'hint.agent.turn-end';

export interface TurnRef {
  readonly workspace: string;
  readonly sessionId: string;
  readonly turnId: string;
}

/** Outcome of an ended turn. `text` is the model's answer in the last step. */
export type TurnOutcome =
  | { readonly kind: 'completed'; readonly text: string }
  | { readonly kind: 'failed'; readonly code: string; readonly cause: Cause }
  | { readonly kind: 'cancelled' };

const textOf = ({ data }: RecordedEvent, field: string): string => {
  const value = data[field];
  return typeof value === 'string' ? value : '';
};

/** Events of a page. The outcome is among the last events, unless turns have followed. */
const PAGE = 500;
const FIRST_PAGE = 20;

const isAnswer = ({ type }: RecordedEvent): boolean =>
  type === 'ModelCallCompleted' || type === 'AnswerForwarded';

/** Reads the outcome of an ended turn from its session. Throws `TURN.NOT_ENDED`, a bug. */
export const readOutcome = async (
  store: Pick<EventStore, 'readStreamPage'>,
  { workspace, sessionId, turnId }: TurnRef,
): Promise<TurnOutcome> => {
  let hasCompleted = false;
  const stream = sessionStream(sessionId);
  for await (const recorded of readBackwards(store, workspace, stream, PAGE, FIRST_PAGE)) {
    const event = upcast(recorded);
    if (event.data['turnId'] !== turnId) continue;
    if (event.type === 'TurnFailed' && !hasCompleted)
      return { kind: 'failed', code: textOf(event, 'code'), cause: event.data['cause'] as unknown as Cause };
    if (event.type === 'TurnCancelled' && !hasCompleted) return { kind: 'cancelled' };
    if (event.type === 'TurnCompleted') hasCompleted = true;
    if (hasCompleted && isAnswer(event)) return { kind: 'completed', text: textOf(event, 'text') };
    if (event.type === 'TurnRequested') break;
  }
  if (hasCompleted) return { kind: 'completed', text: '' };
  throw bug('TURN.NOT_ENDED', 'the turn has no terminal event');
};

/** Interval of polls without a notification, which may be lost, ms. */
const POLL_MS = 1_000;
/** Minimum time between two polls, ms: every append notifies, and one poll serves all waiters. */
const MIN_POLL_INTERVAL_MS = 200;

const ENDED_SQL = `select stream_id, data ->> 'turnId' as turn_id from events
  where workspace = any ($1) and stream_id = any ($2) and type in (${TURN_ENDS_SQL})`;

const findEnded = async (pool: pg.Pool, turns: readonly TurnRef[]): Promise<ReadonlySet<string>> => {
  const values = [
    [...new Set(turns.map(({ workspace }) => workspace))],
    [...new Set(turns.map(({ sessionId }) => sessionStream(sessionId)))],
  ];
  try {
    const query = { name: 'agent_ended_turns', text: ENDED_SQL, values };
    const { rows } = await acrossWorkspaces(pool).query<{ turn_id: string }>(query);
    return new Set(rows.map(({ turn_id }) => turn_id));
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

interface Waiter {
  readonly turn: TurnRef;
  readonly resolve: () => void;
}

export interface TurnEndWatcherDeps {
  readonly pool: pg.Pool;
  readonly nats: NatsLink;
  readonly logger: Logger;
}

/**
 * Waits for turns to end in any process. Polls the log, sooner after a notification of an append.
 */
export class TurnEndWatcher {
  private readonly waiters = new Set<Waiter>();
  private readonly unsubscribe: readonly (() => void)[];
  private timer: NodeJS.Timeout | undefined;
  private dueAt = Infinity;
  private polledAt = -Infinity;

  constructor(private readonly deps: TurnEndWatcherDeps) {
    const ended = deps.nats.connection.subscribe(TURN_END_SUBJECT, {
      callback: (_error, message) => this.notify(message.string()),
    });
    const poll = (): void =>
      this.pollWithin(Math.max(0, this.polledAt + MIN_POLL_INTERVAL_MS - performance.now()));
    const stop = onLogNotification(deps.nats, poll, { categories: ['session'] });
    this.unsubscribe = [stop, () => ended.unsubscribe()];
  }

  /**
   * Resolves once the log has the turn's terminal event. Rejects with the signal's reason on abort.
   */
  waitForEnd(turn: TurnRef, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (then: () => void) => (): void => {
        this.waiters.delete(waiter);
        signal.removeEventListener('abort', abort);
        then();
      };
      const abort = settle(() => reject(signal.reason as Error));
      const waiter: Waiter = { turn, resolve: settle(resolve) };
      if (signal.aborted) return reject(signal.reason as Error);
      signal.addEventListener('abort', abort, { once: true });
      this.waiters.add(waiter);
      // The turn may have ended before this call.
      this.pollWithin(0);
    });
  }

  /**
   * Polls at once if a caller waits for a turn of this session, in which this process ended a turn.
   */
  notify(sessionId: string): void {
    if ([...this.waiters].some(({ turn }) => turn.sessionId === sessionId)) this.pollWithin(0);
  }

  close(): void {
    clearTimeout(this.timer);
    for (const stop of this.unsubscribe) stop();
  }

  /** Schedules a poll within `ms`, unless an earlier one is due. */
  private pollWithin(ms: number): void {
    const at = performance.now() + ms;
    if (this.waiters.size === 0 || at >= this.dueAt) return;
    clearTimeout(this.timer);
    this.dueAt = at;
    this.timer = setTimeout(() => {
      this.dueAt = Infinity;
      void this.poll();
    }, ms).unref();
  }

  private async poll(): Promise<void> {
    this.polledAt = performance.now();
    const waiting = [...this.waiters];
    try {
      const ended = await findEnded(
        this.deps.pool,
        waiting.map(({ turn }) => turn),
      );
      for (const waiter of waiting) if (ended.has(waiter.turn.turnId)) waiter.resolve();
    } catch (error) {
      this.deps.logger.warn({ err: error }, 'turn end poll failed');
    }
    this.pollWithin(POLL_MS);
  }
}

/** Commands of turns, for the parts of a process that have work done by turns of agents. */
export interface TurnCommands {
  submitTurn(request: z.output<typeof submitTurn.request>): Promise<z.output<typeof submitTurn.reply>>;
  cancelTurn(request: z.output<typeof cancelTurn.request>): Promise<z.output<typeof cancelTurn.reply>>;
}

/** Commands of turns in this process. */
export const TURN_COMMANDS = createToken<TurnCommands>('TURN_COMMANDS');
