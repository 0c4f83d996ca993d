import { setTimeout as pause } from 'node:timers/promises';
import { connectClient } from '../client/socket-client.js';
import type { SocketClient, StreamedFrame } from '../client/socket-client.js';
import { Counterexample } from './counterexample.js';

/** One command as its client knows it. */
export interface TurnCommand {
  readonly key: string;
  readonly peer: string;
  /** Holds the key, so that the log shows whether it was taken twice. */
  readonly content: string;
}

export interface TakenTurn extends TurnCommand {
  readonly sessionId: string;
  readonly turnId: string;
  /** Of the last answer, which went on to `done`. */
  readonly frames: readonly StreamedFrame[];
  /** How often the command was sent, all with its one key. */
  readonly sent: number;
}

export interface SendOptions {
  readonly agent?: string;
  /** How long an answer, and then its end, is waited for before the command is sent again, ms. */
  readonly answerMs?: number;
  readonly onAccepted?: () => void;
  /** Told of each answer, or lack of one, after which the command is sent again. */
  readonly onRefused?: (why: string) => void;
}

/** A connection to a gateway that may go away at any time. */
export interface Door {
  client(): Promise<SocketClient>;
  /** The next call connects anew. */
  drop(): Promise<void>;
}

const RETRY_MS = 200;
const ANSWER_MS = 45_000;

export const openDoor = (url: () => string): Door => {
  let current: Promise<SocketClient> | null = null;
  const connect = (): Promise<SocketClient> => {
    const connecting = connectClient(url());
    connecting.then(
      (client) => client.closed.then(() => (current = null)),
      () => (current = null),
    );
    return connecting;
  };
  return {
    client: () => (current ??= connect()),
    drop: async () => {
      const old = current;
      current = null;
      await old?.then((client) => client.close()).catch(() => undefined);
    },
  };
};

interface Rpc {
  readonly code: number;
  readonly message: string;
}
const rpcOf = (error: unknown): Rpc | undefined => (error as { rpc?: Rpc }).rpc;
/** What docs/errors.md says may be sent again with the same key. */
const MAY_RETRY = new Set([-32053, -32029]);

const within = <T>(work: Promise<T>, ms: number): Promise<T> => {
  const tooLate = new AbortController();
  const late = pause(ms, undefined, { signal: tooLate.signal }).then(() => {
    throw new Error(`nothing for ${ms} ms`);
  });
  late.catch(() => undefined);
  return Promise.race([work, late]).finally(() => tooLate.abort());
};

interface Answer {
  readonly sessionId: string;
  readonly turnId: string;
  readonly frames: readonly StreamedFrame[];
}

const askOnce = async (
  door: Door,
  { key, peer, content }: TurnCommand,
  { agent, answerMs = ANSWER_MS, onAccepted }: SendOptions,
  accepted: (turn: Omit<Answer, 'frames'>) => void,
): Promise<Answer> => {
  const client = await door.client();
  const to = { channel: 'load', account: 'load', peer, ...(agent ? { agent } : {}) };
  const params = { ...to, content, idempotencyKey: key };
  const stream = client.stream('chat.send', params);
  const first = await within(
    stream.until('accepted', ({ event }) => event === 'accepted'),
    answerMs,
  );
  onAccepted?.();
  const turn = first.data as { sessionId: string; turnId: string };
  accepted(turn);
  const frames = await within(stream.done(), answerMs);
  return { sessionId: turn.sessionId, turnId: turn.turnId, frames: [...frames] };
};

/**
 * Sends a turn until its `done` has come, as a careful client does: after a refusal that may pass, a lost connection or
 * silence, again with the same key. Throws a Counterexample when two answers name two turns, when a refusal is one
 * that retrying cannot mend, or when `deadlineMs` passes.
 */
export const sendTurn = async (
  door: Door,
  command: TurnCommand,
  deadlineMs = 180_000,
  options: SendOptions = {},
): Promise<TakenTurn> => {
  const deadline = performance.now() + deadlineMs;
  let known: string | null = null;
  let last: unknown;
  const accepted = ({ turnId }: { turnId: string }): void => {
    if (known !== null && known !== turnId)
      throw new Counterexample(`key ${command.key} was answered with turn ${known}, then with ${turnId}`);
    known = turnId;
  };
  for (let sent = 1; performance.now() < deadline; sent++) {
    try {
      return { ...command, ...(await askOnce(door, command, options, accepted)), sent };
    } catch (error) {
      if (error instanceof Counterexample) throw error;
      const rpc = rpcOf(error);
      if (rpc && !MAY_RETRY.has(rpc.code))
        throw new Counterexample(`key ${command.key} was refused for good: ${rpc.code} ${rpc.message}`);
      last = error;
      options.onRefused?.(String(error));
      // A connection that says nothing may be a gateway's that stands still: another one is tried.
      if (!rpc) await door.drop();
    }
    await pause(RETRY_MS);
  }
  throw new Counterexample(
    `key ${command.key} (turn ${known ?? 'not accepted'}) did not end in ${deadlineMs} ms: ${String(last)}`,
  );
};
