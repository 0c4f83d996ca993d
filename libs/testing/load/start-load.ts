import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { openDoor, sendTurn } from './keyed-turn.js';
import type { SendOptions, TakenTurn, TurnCommand } from './keyed-turn.js';

export interface LoadOptions extends Pick<SendOptions, 'agent' | 'answerMs'> {
  /** The gateways: conversations are spread over them, and go to the next one when a connection breaks. */
  readonly wsUrls: readonly string[];
  /** Conversations side by side; each has one message on its way at a time. */
  readonly sessions: number;
  /** Between the end of a turn and the next message, ms (50). */
  readonly pauseMs?: number;
  /** How long a message is asked for again and again, ms (180,000). */
  readonly deadlineMs?: number;
}

/** When a message was asked for, accepted for the first time, and done; ms, `performance.now()` of this process. */
export interface TimedTurn extends TakenTurn {
  readonly askedAt: number;
  readonly acceptedAt: number;
  readonly doneAt: number;
}

/** Clients that talk until they are told to stop, and a record of what they were told. */
export interface Load {
  /** Messages whose `done` has come, in that order. */
  readonly done: readonly TimedTurn[];
  /** When messages were accepted, also those that are not done yet. */
  readonly accepted: readonly number[];
  /** Answers that refused a message for the time being, and when: it was asked for again. */
  readonly refused: readonly { readonly at: number; readonly why: string }[];
  /**
   * Begins no more, and waits until what was begun is done. Throws the first Counterexample that a client has met.
   * Safe to call twice.
   */
  stop(): Promise<void>;
}

/** Begins at once. Each message has an idempotency key and is asked for again, with it, until its turn has ended. */
export const startLoad = (options: LoadOptions): Load => {
  const { wsUrls, sessions, pauseMs = 50, deadlineMs = 180_000 } = options;
  const stopping = new AbortController();
  const done: TimedTurn[] = [];
  const accepted: number[] = [];
  const refused: { at: number; why: string }[] = [];
  const load = randomUUID().slice(0, 8);

  const talk = async (at: number): Promise<void> => {
    let opened = at;
    const door = openDoor(() => wsUrls[opened++ % wsUrls.length] ?? '');
    const say = async (command: TurnCommand): Promise<void> => {
      const askedAt = performance.now();
      let acceptedAt: number | null = null;
      const turn = await sendTurn(door, command, deadlineMs, {
        ...(options.agent === undefined ? {} : { agent: options.agent }),
        ...(options.answerMs === undefined ? {} : { answerMs: options.answerMs }),
        onAccepted: () => {
          if (acceptedAt === null) accepted.push((acceptedAt = performance.now()));
        },
        onRefused: (why) => void refused.push({ at: performance.now(), why }),
      });
      done.push({ ...turn, askedAt, acceptedAt: acceptedAt ?? askedAt, doneAt: performance.now() });
    };
    while (!stopping.signal.aborted) {
      const key = randomUUID();
      await say({ key, peer: `${load}-${at}`, content: `hello ${key}` });
      await pause(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
    await door.drop();
  };
  const talking = Promise.all(Array.from({ length: sessions }, (_, at) => talk(at)));
  talking.catch(() => undefined);
  return {
    done,
    accepted,
    refused,
    stop: async () => {
      stopping.abort();
      await talking;
    },
  };
};
