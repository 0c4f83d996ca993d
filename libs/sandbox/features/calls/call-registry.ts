import type { z } from 'zod';
import type { ToolCancel, callTool, findCall } from '@antiphon/contracts/sandbox';
import { conflict, sleep } from '@antiphon/kernel';
import { CallerClocks, steadyNow } from './caller-clocks.js';

export type CallToolRequest = z.output<typeof callTool.request>;
export type CallToolReply = z.input<typeof callTool.reply>;
export type FindCallRequest = z.output<typeof findCall.request>;
export type FoundCall = z.input<typeof findCall.reply>;

/** Fences replaced drivers by the highest lease epoch of each session. */
export class SessionFence {
  private readonly epochs = new Map<string, number>();

  constructor(private readonly maxSessions = 10_000) {}

  /** Throws `SANDBOX.FENCED` (conflict, with `epoch` and `actual`) for a replaced driver. */
  check(workspace: string, sessionId: string, epoch: number): void {
    const key = `${workspace}/${sessionId}`;
    const seen = this.epochs.get(key) ?? 0;
    if (epoch < seen)
      throw conflict('SANDBOX.FENCED', 'another driver has taken this session over', {
        data: { epoch, actual: seen },
      });
    this.epochs.delete(key); // inserted again, as the newest
    this.epochs.set(key, epoch);
    const [oldest] = this.epochs.keys();
    if (this.epochs.size > this.maxSessions && oldest !== undefined) this.epochs.delete(oldest);
  }
}

export interface RememberedCallsOptions<Result> {
  readonly maxCalls: number;
  /** Maximum sum of `sizeOf` over the remembered calls. */
  readonly maxBytes: number;
  readonly sizeOf: (result: Result) => number;
  /** Returns false for a result after which the same call may run again. */
  readonly isFinal: (result: Result) => boolean;
}

interface RememberedCall<Result> {
  readonly fingerprint: string;
  readonly result: Promise<Result>;
  /** Null while the call runs. A running call is never evicted. */
  bytes: number | null;
}

/**
 * Runs a call id once: it is the idempotency key of a call. A repeat shares the result of the first
 * run while that runs or is cached.
 */
export class RememberedCalls<Result> {
  private readonly calls = new Map<string, RememberedCall<Result>>();
  private totalBytes = 0;

  constructor(private readonly options: RememberedCallsOptions<Result>) {}

  /** Throws `TOOL.CALL_ID_REUSED` (conflict) when the id was used with another fingerprint. */
  async runOnce(callId: string, fingerprint: string, run: () => Promise<Result>): Promise<Result> {
    const known = this.calls.get(callId);
    if (known === undefined) return this.start(callId, fingerprint, run);
    if (known.fingerprint !== fingerprint)
      throw conflict('TOOL.CALL_ID_REUSED', 'this call id was used for another call');
    return known.result;
  }

  /** Returns a running or cached call, or null. */
  find(callId: string): { readonly hasEnded: boolean; readonly result: Promise<Result> } | null {
    const known = this.calls.get(callId);
    return known ? { hasEnded: known.bytes !== null, result: known.result } : null;
  }

  private start(callId: string, fingerprint: string, run: () => Promise<Result>): Promise<Result> {
    const call: RememberedCall<Result> = { fingerprint, result: run(), bytes: null };
    this.calls.set(callId, call);
    call.result.then(
      (result) => this.settle(callId, call, result),
      () => this.forget(callId),
    );
    return call.result;
  }

  private settle(callId: string, call: RememberedCall<Result>, result: Result): void {
    if (!this.options.isFinal(result)) return this.forget(callId);
    call.bytes = this.options.sizeOf(result);
    this.totalBytes += call.bytes;
    this.evict();
  }

  private evict(): void {
    const { maxCalls, maxBytes } = this.options;
    for (const [callId, { bytes }] of this.calls) {
      if (this.calls.size <= maxCalls && this.totalBytes <= maxBytes) return;
      if (bytes !== null) this.forget(callId);
    }
  }

  private forget(callId: string): void {
    this.totalBytes -= this.calls.get(callId)?.bytes ?? 0;
    this.calls.delete(callId);
  }
}

/** A reply, and whether the same call again gets it from the cache instead of a new run. */
interface CallResult {
  readonly reply: CallToolReply;
  readonly isFinal: boolean;
}

/**
 * Time for which a call may begin an effect after its caller was last heard, ms. A caller asks for
 * its call every 2 s, and gives it up 4.5 s after the last answer.
 */
const WATCHED_MS = 3_500;
const WATCH_POLL_MS = 50;

/** A running call. */
export interface RunningCall {
  /** Aborts when the call is cancelled. */
  readonly signal: AbortSignal;
  /** Returns whether the deadline for its start has passed. */
  readonly isLate: () => boolean;
  /**
   * Returns whether the caller still waits for the call, as far as this process knows. The outcome
   * of a call without a caller may be recorded as unknown, so it may have no effect any more.
   */
  readonly isWatched: () => boolean;
  /** Waits until the caller is heard again. Rejects when `signal` aborts. */
  readonly waitUntilWatched: (signal: AbortSignal) => Promise<void>;
}

interface Running {
  readonly controller: AbortController;
  /** Time at which the caller was last heard, by the steady clock. */
  heardAt: number;
}

const MAX_REMEMBERED_CALLS = 2_000;
const MAX_REMEMBERED_BYTES = 32 * 1024 * 1024;

const toKey = ({ workspace, callId }: Pick<CallToolRequest, 'workspace' | 'callId'>): string =>
  `${workspace}/${callId}`;

const sizeOfReply = (reply: CallToolReply): number =>
  (reply.outcome === 'completed' ? reply.content : reply.message).length;

/** Tool calls of this process: running ones, which can be cancelled, and recent results. */
export class CallRegistry {
  private readonly fence = new SessionFence();
  private readonly running = new Map<string, Running>();
  readonly clocks: CallerClocks;
  private readonly remembered = new RememberedCalls<CallResult>({
    maxCalls: MAX_REMEMBERED_CALLS,
    maxBytes: MAX_REMEMBERED_BYTES,
    sizeOf: ({ reply }) => sizeOfReply(reply),
    isFinal: ({ isFinal }) => isFinal,
  });

  /** `now` is a steady clock. */
  constructor(private readonly now: () => number = steadyNow) {
    this.clocks = new CallerClocks(now);
  }

  /** Throws `SANDBOX.FENCED` when another driver has replaced the caller. */
  checkFence({ workspace, sessionId, epoch }: ToolCancel): void {
    this.fence.check(workspace, sessionId, epoch);
  }

  /** Runs a call, or returns the result of its first run. */
  async runOnce(
    request: CallToolRequest,
    fingerprint: string,
    run: (call: RunningCall) => Promise<CallResult>,
  ): Promise<CallToolReply> {
    const key = toKey(request);
    const { sentAt } = request;
    const wasLate = this.isLate(request); // a late request measures nothing
    if (sentAt) this.clocks.observe(sentAt);
    const start = async (): Promise<CallResult> => {
      const running: Running = { controller: new AbortController(), heardAt: this.now() };
      this.running.set(key, running);
      const isLate = (): boolean => wasLate || this.isLate(request);
      const call = { ...this.toRunningCall(running, sentAt !== undefined), isLate };
      return run(call).finally(() => this.running.delete(key));
    };
    return (await this.remembered.runOnce(key, fingerprint, start)).reply;
  }

  /** Returns the state of a call, or null when this process does not know it. */
  async find(request: FindCallRequest): Promise<FoundCall | null> {
    const known = this.remembered.find(toKey(request));
    if (known === null) return null;
    const running = this.running.get(toKey(request));
    if (running) running.heardAt = this.now();
    if (!known.hasEnded) return { state: 'running' };
    return { state: 'ended', reply: (await known.result).reply };
  }

  /** Ends a waiting or running call as `TOOL.CANCELLED`. Ignores calls of other processes. */
  cancel(cancel: ToolCancel): void {
    this.checkFence(cancel);
    this.running.get(toKey(cancel))?.controller.abort();
  }

  private isLate({ sentAt, notAfter }: Pick<CallToolRequest, 'sentAt' | 'notAfter'>): boolean {
    return sentAt !== undefined && notAfter !== undefined && this.clocks.isOver(sentAt.caller, notAfter);
  }

  /** Calls of callers that send no time are never given up. */
  private toRunningCall(running: Running, isTimed: boolean): Omit<RunningCall, 'isLate'> {
    const isWatched = (): boolean => !isTimed || this.now() - running.heardAt <= WATCHED_MS;
    const waitUntilWatched = async (signal: AbortSignal): Promise<void> => {
      while (!isWatched()) await sleep(WATCH_POLL_MS, signal);
    };
    return { signal: running.controller.signal, isWatched, waitUntilWatched };
  }
}
