import type { LargeResults } from './large-results.js';
import type { z } from 'zod';
import { healthContract } from '@antiphon/contracts/messaging';
import { findCall } from '@antiphon/contracts/sandbox';
import type { ToolReply } from '@antiphon/contracts/sandbox';
import { abortable, isAppError, sleep, transient } from '@antiphon/kernel';
import type { AppError } from '@antiphon/kernel';
import { nextServiceStart } from '@antiphon/messaging';
import type { NatsLink, RequestClient, RequestOptions } from '@antiphon/messaging';

/** A pending call. */
interface PendingCall extends Pick<z.input<typeof findCall.request>, 'workspace' | 'sessionId' | 'callId'> {
  /**
   * Returns whether the call may have had an effect that may not be repeated. Called when the call
   * is lost: one that has not begun can have none afterwards.
   */
  readonly mayHaveActed: () => boolean;
}

/** Delay before the sandbox is first asked where a call is, and between later questions, ms. */
const LATE_MS = 2_000;
/** Delay before the next question when no process knew the call, ms. */
const UNKNOWN_MS = 500;
const HEALTH_TIMEOUT_MS = 1_000;
/**
 * Number of consecutive questions without a process that knows the call, after which it is lost.
 */
const ROUNDS = 2;
/**
 * Number of health checks in a row without a sandbox, after which its calls are lost. A process
 * that shuts down accepts no requests, but completes those that it has. A killed one serves again
 * within a second, and gets the calls again that are idempotent.
 */
const MISSES = 4;
/** Interval of the health checks while responses are pending, ms. */
const HEALTH_INTERVAL_MS = 250;

/**
 * Time after the last sign of a call that may have acted, after which it is given up, ms. The
 * sandbox lets a call begin no effect 3.5 s after its caller's last question (call-registry.ts), so
 * that no effect follows the recorded outcome.
 */
const LOST_MS = 4_500;

/**
 * Returns milliseconds since the epoch, counted by the monotonic clock: never steps, and advances
 * while the process is suspended.
 */
export const steadyNow = (): number => performance.timeOrigin + performance.now();

const sandboxHealth = healthContract('sandbox');

/**
 * Detects that no sandbox process is left to answer pending calls: NATS sends no notification when
 * the process that handles a request dies. One health check serves all calls of this process.
 */
export class SandboxWatch {
  private readonly listeners = new Set<(error: AppError) => void>();
  private isWatching = false;

  constructor(
    readonly requests: RequestClient,
    /** Fetches results that are too large for a reply. */
    readonly results: Pick<LargeResults, 'keep'>,
  ) {}

  /** Calls `listener` once when no sandbox process is left. Returns the unsubscribe function. */
  onGone(listener: (error: AppError) => void): () => void {
    this.listeners.add(listener);
    if (!this.isWatching) {
      this.isWatching = true;
      void this.watch();
    }
    return () => void this.listeners.delete(listener);
  }

  private async watch(): Promise<void> {
    let misses = new Map<(error: AppError) => void, number>();
    for (await sleep(HEALTH_INTERVAL_MS); this.listeners.size > 0; await sleep(HEALTH_INTERVAL_MS)) {
      const asked = [...this.listeners];
      const isGone = await this.isSandboxGone();
      const before = misses;
      misses = new Map(isGone ? asked.map((listener) => [listener, (before.get(listener) ?? 0) + 1]) : []);
      const lost = [...misses].flatMap(([listener, count]) => (count >= MISSES ? [listener] : []));
      const error = transient('SANDBOX.LOST', 'the sandbox went away during the call');
      for (const listener of lost) if (this.listeners.delete(listener)) listener(error);
    }
    this.isWatching = false;
  }

  private async isSandboxGone(): Promise<boolean> {
    try {
      await this.requests.request(sandboxHealth, {});
      return false;
    } catch (error) {
      // Any other error comes from a process that is there, or tells nothing.
      return isAppError(error) && error.code === 'MESSAGING.NO_RESPONDERS';
    }
  }
}

/**
 * Time for which a call that reached no sandbox waits for one to start, ms. A killed one serves
 * again within it. It is shorter than `MISSES` health checks.
 */
const START_PATIENCE_MS = 900;

export interface RepeatOptions {
  readonly idempotent: boolean;
  readonly signal: AbortSignal;
}

/**
 * Sends a call, and sends it once more when a sandbox process starts, if no process had it or its
 * tool is idempotent. `send` uses the same ids and the same deadline both times.
 */
export const sendAgainAtStart = async <T>(
  { connection }: Pick<NatsLink, 'connection'>,
  send: (options: RequestOptions) => Promise<T>,
  { idempotent, signal }: RepeatOptions,
): Promise<T> => {
  try {
    return await send(idempotent ? { endsAtStart: true } : {});
  } catch (error) {
    const code = isAppError(error) ? error.code : null;
    if (code === 'MESSAGING.NO_RESPONDERS')
      await nextServiceStart(connection, 'sandbox', { limitMs: START_PATIENCE_MS, signal });
    else if (code !== 'MESSAGING.RESTARTED') throw error;
    return send({});
  }
};

/** Result of a question. `silence`: no process that was asked in time knows the call. */
type Found = z.output<typeof findCall.reply> | { readonly state: 'silence' | 'not_asked' };

const askForCall = async (
  requests: RequestClient,
  { workspace, sessionId, callId }: PendingCall,
): Promise<Found> => {
  try {
    return await requests.request(findCall, { workspace, sessionId, callId });
  } catch (error) {
    // Without a responder, or without NATS, the question tells nothing about the call.
    return { state: isAppError(error) && error.code === 'MESSAGING.TIMEOUT' ? 'silence' : 'not_asked' };
  }
};

/**
 * Returns whether silence counts: it tells nothing of processes that cannot be reached or have
 * stalled.
 */
const isSandboxHealthy = async (requests: RequestClient): Promise<boolean> => {
  try {
    await requests.request(sandboxHealth, {}, { timeoutMs: HEALTH_TIMEOUT_MS });
    return true;
  } catch {
    return false;
  }
};

/**
 * Returns the reply of a call whose response was lost. Rejects when the call is lost, and when
 * `signal` aborts.
 */
const findLateReply = async (
  requests: RequestClient,
  call: PendingCall,
  onRunning: () => void,
  signal: AbortSignal,
): Promise<ToolReply> => {
  for (let rounds = 0; rounds < ROUNDS;) {
    await sleep(rounds > 0 ? UNKNOWN_MS : LATE_MS, signal);
    const found = await askForCall(requests, call);
    if (found.state === 'ended') return found.reply;
    if (found.state === 'running') {
      rounds = 0;
      onRunning();
    }
    if (found.state === 'silence' && (await isSandboxHealthy(requests))) rounds++;
  }
  throw transient('SANDBOX.LOST', 'no sandbox process knows the call');
};

/**
 * Returns a call's reply. Rejects with `SANDBOX.LOST` (transient) when no sandbox process is left,
 * or none has the call, instead of at the call's deadline. NATS reports neither a request to a
 * process that died nor a response that was cut off. A call that is not idempotent and has begun is
 * lost 4.5 s after its last sign at the earliest.
 *
 * It asks for the call and never repeats it. A call may be declared lost by mistake, when its
 * process is cut off and another one responds. It is handled like any lost response then. Rejects
 * with `Stopped` when `signal` aborts.
 */
export const detectLostCall = async (
  sandbox: Pick<SandboxWatch, 'onGone' | 'requests'>,
  call: PendingCall,
  reply: Promise<ToolReply>,
  signal: AbortSignal,
): Promise<ToolReply> => {
  const over = new AbortController();
  let seenAt = steadyNow();
  /** Delays a loss until the sandbox lets the call begin no effect any more. */
  const holdLoss = async (error: unknown): Promise<never> => {
    const isLoss =
      isAppError(error) && error.kind === 'transient' && error.code !== 'MESSAGING.NO_RESPONDERS';
    const heldMs = seenAt + LOST_MS - steadyNow();
    if (isLoss && heldMs > 0 && call.mayHaveActed()) await sleep(heldMs, over.signal);
    throw error;
  };
  let unwatch: () => void = () => undefined;
  const gone = new Promise<never>((_, reject) => (unwatch = sandbox.onGone(reject)));
  const found = findLateReply(sandbox.requests, call, () => (seenAt = steadyNow()), over.signal);
  const ends = [reply, gone, found].map((end) => end.catch(holdLoss));
  for (const end of ends) end.catch(() => undefined);
  try {
    return await abortable(Promise.race(ends), signal);
  } finally {
    unwatch();
    over.abort();
  }
};
