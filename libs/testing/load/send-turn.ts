import { sleep, withTimeout } from '@antiphon/kernel';
import type { StreamedFrame } from '../client/frames.js';
import { connectClient } from '../client/socket-client.js';
import type { SocketClient } from '../client/socket-client.js';

/** A broken promise of the product, found by a load. */
export class Counterexample extends Error {
  override readonly name = 'Counterexample';
}

/** One command as its client knows it. */
export interface TurnCommand {
  readonly key: string;
  readonly peer: string;
  /** Contains the key, so that the log shows whether the command was accepted twice. */
  readonly content: string;
}

export interface SentTurn extends TurnCommand {
  readonly sessionId: string;
  readonly turnId: string;
  /** Frames of the last stream, which reached `done`. */
  readonly frames: readonly StreamedFrame[];
  /** How the client saw the turn end: `completed`, `cancelled`, or the code of the failure. */
  readonly end: string;
  /** Number of times that the command was sent, each with its one key. */
  readonly sent: number;
}

export interface SendOptions {
  readonly agent?: string;
  /** Time limit for `accepted`, and again for `done`, before the command is sent again, ms. */
  readonly answerMs?: number;
  readonly onAccepted?: () => void;
  /** Called before each retry with its cause: a refusal, a lost connection or a timeout. */
  readonly onRefused?: (cause: string) => void;
}

/** A client that connects on use, and again after its connection is lost. */
export interface ReconnectingClient {
  connected(): Promise<SocketClient>;
  /** Closes the connection; the next use opens another one. */
  disconnect(): Promise<void>;
}

const RETRY_MS = 200;
const ANSWER_MS = 45_000;

/**
 * Creates a client that asks `nextUrl` for the address of each connection. `headers` carry its
 * credential, if the gateway needs one.
 */
export const createReconnectingClient = (
  nextUrl: () => string,
  headers: Record<string, string> = {},
): ReconnectingClient => {
  let current: Promise<SocketClient> | null = null;
  const connect = (): Promise<SocketClient> => {
    const connecting = connectClient(nextUrl(), headers);
    connecting.then(
      (client) => client.closed.then(() => (current = null)),
      () => (current = null),
    );
    return connecting;
  };
  return {
    connected: () => (current ??= connect()),
    disconnect: async () => {
      const old = current;
      current = null;
      await old?.then((client) => client.close()).catch(() => undefined);
    },
  };
};

interface RpcError {
  readonly code: number;
  readonly message: string;
}
const rpcErrorOf = (error: unknown): RpcError | undefined => (error as { rpc?: RpcError }).rpc;
/** JSON-RPC codes that docs/errors.md allows to be retried with the same key. */
const RETRYABLE = new Set([-32053, -32029]);

/**
 * Reads from a turn's frames how it ended: `completed`, `cancelled`, or the code of the failure.
 */
export const turnEndOf = (frames: readonly StreamedFrame[]): string => {
  const { status } = frames.findLast(({ event }) => event === 'done')?.data as { status: string };
  if (status !== 'failed') return status;
  const failure = frames.findLast(({ event }) => event === 'error')?.data as { code: string } | undefined;
  return failure?.code ?? 'failed without a code';
};

type Answer = Pick<SentTurn, 'sessionId' | 'turnId' | 'frames' | 'end'>;

const timedOut = (ms: number) => (): Error => new Error(`no frame within ${ms} ms`);

const sendOnce = async (
  gateway: ReconnectingClient,
  { key, peer, content }: TurnCommand,
  { agent, answerMs = ANSWER_MS, onAccepted }: SendOptions,
  onTurn: (turnId: string) => void,
): Promise<Answer> => {
  const client = await gateway.connected();
  const to = { channel: 'load', account: 'load', peer, ...(agent ? { agent } : {}) };
  const stream = client.stream('chat.send', { ...to, content, idempotencyKey: key });
  const accepted = stream.waitFor('accepted', ({ event }) => event === 'accepted');
  const { data } = await withTimeout(accepted, answerMs, timedOut(answerMs));
  onAccepted?.();
  const { sessionId, turnId } = data as { sessionId: string; turnId: string };
  onTurn(turnId);
  const frames = [...(await withTimeout(stream.done(), answerMs, timedOut(answerMs)))];
  return { sessionId, turnId, frames, end: turnEndOf(frames) };
};

/**
 * Sends a turn until its `done` frame arrives, as a careful client does. It retries with the same
 * key after a retryable refusal, a lost connection or a timeout. Throws a Counterexample when two
 * answers name two turns, when a refusal is permanent, or when `deadlineMs` passes.
 */
export const sendTurn = async (
  gateway: ReconnectingClient,
  command: TurnCommand,
  deadlineMs = 180_000,
  options: SendOptions = {},
): Promise<SentTurn> => {
  const deadline = performance.now() + deadlineMs;
  let known: string | null = null;
  let lastError: unknown;
  const onTurn = (turnId: string): void => {
    if (known !== null && known !== turnId)
      throw new Counterexample(`key ${command.key} was answered with turn ${known}, then with ${turnId}`);
    known = turnId;
  };
  for (let sent = 1; performance.now() < deadline; sent++) {
    try {
      return { ...command, ...(await sendOnce(gateway, command, options, onTurn)), sent };
    } catch (error) {
      if (error instanceof Counterexample) throw error;
      const rpc = rpcErrorOf(error);
      if (rpc && !RETRYABLE.has(rpc.code))
        throw new Counterexample(`key ${command.key} was refused permanently: ${rpc.code} ${rpc.message}`);
      lastError = error;
      options.onRefused?.(String(error));
      // A silent connection may belong to a gateway that is stopped: the next attempt connects
      // elsewhere.
      if (!rpc) await gateway.disconnect();
    }
    await sleep(RETRY_MS);
  }
  throw new Counterexample(
    `key ${command.key} (turn ${known ?? 'not accepted'}) did not end in ${deadlineMs} ms: ${String(lastError)}`,
  );
};
