import { randomUUID } from 'node:crypto';
import { sleep } from '@antiphon/kernel';
import { createReconnectingClient, sendTurn } from './send-turn.js';
import type { ReconnectingClient, SendOptions, SentTurn, TurnCommand } from './send-turn.js';

export interface LoadOptions extends Pick<SendOptions, 'agent' | 'answerMs'> {
  /**
   * Addresses of the gateways. Sessions are spread over them, and move to the next one when a
   * connection breaks.
   */
  readonly wsUrls: readonly string[];
  /** Number of sessions side by side; each has one open turn at a time. */
  readonly sessions: number;
  /** Pause between the end of a turn and the next message, ms (50). */
  readonly pauseMs?: number;
  /** Time for which a message is retried, ms (180,000). */
  readonly deadlineMs?: number;
}

/**
 * Times at which a message was sent first, accepted first, and done; ms, `performance.now()` of
 * this process.
 */
export interface TimedTurn extends SentTurn {
  readonly askedAt: number;
  readonly acceptedAt: number;
  readonly doneAt: number;
}

/** Clients that send turns until `stop`, and a record of the answers. */
export interface Load {
  /** Turns whose `done` arrived, in that order. */
  readonly done: readonly TimedTurn[];
  /** Times at which messages were accepted, also those that are not done yet. */
  readonly accepted: readonly number[];
  /** Retryable refusals. */
  readonly refused: readonly { readonly at: number; readonly cause: string }[];
  /**
   * Sends no further message, and waits for the open turns. Throws a client's first Counterexample.
   * Idempotent.
   */
  stop(): Promise<void>;
}

class RunningLoad implements Load {
  readonly done: TimedTurn[] = [];
  readonly accepted: number[] = [];
  readonly refused: { at: number; cause: string }[] = [];
  private readonly stopping = new AbortController();
  private readonly name = randomUUID().slice(0, 8);
  private readonly sessions: Promise<unknown>;

  constructor(private readonly options: LoadOptions) {
    this.sessions = Promise.all(Array.from({ length: options.sessions }, (_, nth) => this.runSession(nth)));
    this.sessions.catch(() => undefined);
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.sessions;
  }

  private async runSession(nth: number): Promise<void> {
    const { wsUrls, pauseMs = 50 } = this.options;
    let opened = nth;
    const gateway = createReconnectingClient(() => wsUrls[opened++ % wsUrls.length] ?? '');
    while (!this.stopping.signal.aborted) {
      const key = randomUUID();
      await this.sendOne(gateway, { key, peer: `${this.name}-${nth}`, content: `hello ${key}` });
      await sleep(pauseMs, this.stopping.signal).catch(() => undefined);
    }
    await gateway.disconnect();
  }

  private async sendOne(gateway: ReconnectingClient, command: TurnCommand): Promise<void> {
    const { agent, answerMs, deadlineMs = 180_000 } = this.options;
    const askedAt = performance.now();
    let acceptedAt: number | null = null;
    const turn = await sendTurn(gateway, command, deadlineMs, {
      agent,
      answerMs,
      onAccepted: () => {
        if (acceptedAt === null) this.accepted.push((acceptedAt = performance.now()));
      },
      onRefused: (cause) => void this.refused.push({ at: performance.now(), cause }),
    });
    this.done.push({ ...turn, askedAt, acceptedAt: acceptedAt ?? askedAt, doneAt: performance.now() });
  }
}

/**
 * Starts a load at once. Each message has an idempotency key, and is retried with it until its turn
 * has ended.
 */
export const startLoad = (options: LoadOptions): Load => new RunningLoad(options);
