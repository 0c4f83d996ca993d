import type pg from 'pg';
import { followUps, maxRetryDelay } from '@antiphon/conversation-domain';
import type { SessionCommand, SessionState, TurnToolCall } from '@antiphon/conversation-domain';
import type { ToolCallRef, ToolRetryProgress } from '@antiphon/agent-workflows';
import { WorkTrials, createWorkStarts } from '@antiphon/database';
import { failpoint, isAppError, sleep } from '@antiphon/kernel';
import { runWithContext } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import type { ClaimedSession, SessionRegistry } from '../sessions/session-registry.js';
import { retryTransient } from '../sessions/retry-transient.js';
import { Stopped } from '../sessions/stopped.js';
import { lostOutcome, unknownOutcome } from './tool-call.js';
import type { Failpoint } from './step-context.js';
import type { ToolCallContext, ToolCaller } from './tool-call.js';
import type { TurnPolicy } from './turn-policy.js';
import { observeTool, turnContext } from './turn-telemetry.js';
import { createToken } from '@antiphon/service-host';

/** A deferred tool call, and the agent that it belongs to. */
export interface ToolRetryRef extends ToolCallRef {
  readonly agentId: string;
}

/** Schedules the retries of deferred calls. */
export interface ToolRetries {
  /**
   * Schedules a call's retries, once: a call that is scheduled already is skipped. Does not throw.
   */
  schedule(call: ToolRetryRef): void;
}

/** Scheduler of the retries of deferred tool calls. */
export const TOOL_RETRIES = createToken<ToolRetries>('TOOL_RETRIES');

export interface ToolRetryDeps {
  readonly registry: SessionRegistry;
  readonly caller: ToolCaller;
  readonly policy: TurnPolicy;
  readonly failpoint: Failpoint;
  readonly pool: pg.Pool;
  readonly logger: Logger;
}

interface DeferredCall {
  readonly turnId: string;
  readonly call: TurnToolCall;
}

const OVER: ToolRetryProgress = { over: true, waitMs: 0 };
/** Kind of the counted starts of retries. */
const RETRY = 'tool-retry';
/** Longer than a tool runs: a retry that waits for its tool may still lose its process, ms. */
const RETRY_TRIAL_MS = 600_000;
const RETRIER_LOST = { kind: 'tool_retrier_lost' } as const;

/** Whether the attempt itself recorded the claim under which it calls the tool. */
interface ClaimOfRetry {
  isOurs: boolean;
}

/** An attempt is not cancelled with its turn: the turn's driver records the cancel. */
const neverAborted = new AbortController().signal;

/**
 * Maximum age of the proof that a call is still claimed, ms. A read that took longer is repeated,
 * because this process may have been suspended during it.
 */
const PROOF_MS = 1_000;

/** Returns a call while it waits for a retry, or while a retry runs. */
const findDeferred = ({ open }: SessionState, callId: string): DeferredCall | null => {
  const call = open?.steps.flatMap(({ calls }) => calls).find((one) => one.callId === callId);
  return open && call?.status === 'requested' && call.deferred ? { turnId: open.turnId, call } : null;
};

/** Retries tool calls, in any agent process. Each retry is safe to repeat. */
export class ToolRetry {
  private readonly trials: WorkTrials;

  constructor(private readonly deps: ToolRetryDeps) {
    this.trials = new WorkTrials(createWorkStarts(deps.pool), { trialMs: RETRY_TRIAL_MS });
  }

  /** Reads a call's progress from the log. */
  async read({ workspace, sessionId, callId }: ToolCallRef): Promise<ToolRetryProgress> {
    const { registry } = this.deps;
    const session = await registry.requireSession(workspace, sessionId);
    registry.wakeDriver(session);
    return this.progressOf(session, callId);
  }

  /**
   * Makes the next attempt and records its outcome, or when the one after it is due. A retry that
   * ends each process which makes it fails.
   */
  async retry({ workspace, sessionId, callId }: ToolCallRef): Promise<ToolRetryProgress> {
    const { registry } = this.deps;
    const session = await registry.requireSession(workspace, sessionId);
    try {
      return await this.trials.run(RETRY, callId, () => this.retryDeferred(session, callId));
    } catch (error) {
      if (!isAppError(error) || error.code !== 'WORK.PROCESS_LOST') throw error;
      await this.giveUp(session, callId);
      return this.progressOf(session, callId);
    } finally {
      registry.wakeDriver(session);
    }
  }

  /** Releases the retries of a process that stops in order. */
  release(): Promise<void> {
    return this.trials.release();
  }

  private async giveUp(session: ClaimedSession, callId: string): Promise<void> {
    const deferred = findDeferred(session.actor.fold().state, callId);
    if (!deferred) return;
    const { turnId, call } = deferred;
    const outcome = call.claimed ? unknownOutcome(turnId, callId, RETRIER_LOST) : lostOutcome(turnId, callId);
    const now = this.deps.policy.now();
    await this.commit(session, { type: 'RecordToolOutcomes', data: { outcomes: [outcome] }, now });
  }

  private async retryDeferred(session: ClaimedSession, callId: string): Promise<ToolRetryProgress> {
    const { workspace, sessionId } = session.actor;
    const { state, origins } = session.actor.fold();
    const deferred = findDeferred(state, callId);
    if (!deferred || state.open?.cancelRequested) return OVER;
    const { turnId } = deferred;
    const logContext = turnContext(origins[turnId], { workspace, sessionId, turnId });
    await runWithContext(logContext, () => this.attempt(session, deferred)).catch((error: unknown) => {
      // Another driver reached the sandbox first: its records show what is left to do.
      if (!(error instanceof Stopped)) throw error;
    });
    return this.progressOf(session, callId);
  }

  private async attempt(session: ClaimedSession, { turnId, call }: DeferredCall): Promise<void> {
    const { policy } = this.deps;
    const claims: ClaimOfRetry = { isOurs: call.idempotent };
    const claim = async (callId: string): Promise<void> => {
      const data = { turnId, callIds: [callId] };
      claims.isOurs = await this.commit(session, { type: 'ClaimTools', data, now: policy.now() });
    };
    const context = this.contextOf(session, call, claims);
    const { workspace, sessionId } = session.actor;
    await failpoint('work.retry.begun', () => `${workspace} ${sessionId} ${call.name}`);
    const outcome = call.claimed
      ? unknownOutcome(turnId, call.callId, RETRIER_LOST)
      : await observeTool(call, () => this.deps.caller.call(context, turnId, call, claim));
    await this.deps.failpoint('agent.tool.answered', sessionId);
    const now = policy.now();
    await this.commit(session, { type: 'RecordToolOutcomes', data: { outcomes: [outcome] }, now });
  }

  private contextOf(session: ClaimedSession, call: TurnToolCall, claims: ClaimOfRetry): ToolCallContext {
    const { actor, claim } = session;
    return {
      actor,
      signal: neverAborted,
      confirmClaim: () => this.confirmClaim(session, call, claims),
      epoch: () => actor.lease.held()?.epoch ?? (claim.owned ? 0 : claim.epoch),
    };
  }

  /**
   * Reads the call's state, to prove that this attempt's claim is the last one and that its outcome
   * is still open. Throws `Stopped` otherwise.
   */
  private async confirmClaim(
    { actor }: ClaimedSession,
    { callId, idempotent, tries }: TurnToolCall,
    { isOurs }: ClaimOfRetry,
  ): Promise<void> {
    if (!isOurs) throw new Stopped('lost');
    for (;;) {
      const askedAt = performance.now();
      await retryTransient(() => actor.refresh(), neverAborted, this.deps.logger);
      const { state } = actor.fold();
      const now = findDeferred(state, callId)?.call;
      if (!now || (!idempotent && !(now.claimed && now.tries === tries + 1))) throw new Stopped('lost');
      if (state.open?.cancelRequested) throw new Stopped('cancelled');
      if (performance.now() - askedAt < PROOF_MS) return;
    }
  }

  private progressOf({ actor }: ClaimedSession, callId: string): ToolRetryProgress {
    const deferred = findDeferred(actor.fold().state, callId);
    if (!deferred) return OVER;
    const dueAt = Date.parse(deferred.call.deferred?.dueAt ?? '');
    // Bounded, because another process wrote the due time by its own clock.
    const waitMs = Math.min(Math.max(0, dueAt - this.deps.policy.clock.now()), maxRetryDelay(deferred.call));
    return { over: false, waitMs };
  }

  /**
   * Commits again after a lost lease: the outcome of an attempt belongs to the call, not to its
   * driver. Returns whether this commit appended the events.
   */
  private commit(session: ClaimedSession, command: SessionCommand): Promise<boolean> {
    const commit = (): Promise<boolean> =>
      this.commitOnce(session, command).catch((error: unknown) => {
        if (!isAppError(error) || error.code !== 'LOG.FENCED') throw error;
        return this.commitOnce(session, command);
      });
    return retryTransient(commit, neverAborted, this.deps.logger);
  }

  /**
   * Commits with or without the lease. Another process that drives the session is notified
   * afterwards.
   */
  private async commitOnce({ actor }: ClaimedSession, command: SessionCommand): Promise<boolean> {
    const { policy } = this.deps;
    const { decider } = policy;
    const { outcome } = await actor.commit(({ state }) => {
      const decided = decider.decide(command, state);
      if (!actor.lease.held() || decided.length === 0) return { events: decided };
      const next = decided.reduce(decider.evolve, state);
      return { events: [...decided, ...followUps(next, policy.contextOf(actor, state))] };
    });
    return outcome === 'appended';
  }
}

/**
 * Schedules retries in this process, without Temporal. The session's next driver schedules lost
 * ones again.
 */
export class LocalRetries implements ToolRetries {
  private readonly scheduled = new Set<string>();

  constructor(
    private readonly toolRetry: ToolRetry,
    private readonly stopping: AbortSignal,
    private readonly logger: Logger,
  ) {}

  schedule(call: ToolRetryRef): void {
    const { callId } = call;
    if (this.scheduled.has(callId)) return;
    this.scheduled.add(callId);
    this.retryUntilOver(call)
      .catch((error: unknown) => {
        if (!this.stopping.aborted) this.logger.warn({ err: error, callId }, 'tool retry failed');
      })
      .finally(() => this.scheduled.delete(callId));
  }

  private async retryUntilOver(call: ToolRetryRef): Promise<void> {
    let progress = await this.toolRetry.read(call);
    while (!progress.over) {
      await sleep(progress.waitMs, this.stopping);
      progress = await this.toolRetry.retry(call);
    }
  }
}
