import { canBegin, followUps, nextStep } from '@antiphon/conversation-domain';
import type { SessionEvent } from '@antiphon/contracts/agent';
import type { FollowUpContext, OpenTurn, SessionCommand, SessionState } from '@antiphon/conversation-domain';
import { sleep } from '@antiphon/kernel';
import { runWithContext } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import type { SessionActor } from '../sessions/session-actor.js';
import type { SessionFold } from '../sessions/session-fold.js';
import type { SessionDriver, UpcomingTurn } from '../sessions/local-session.js';
import type { AppendListener, Decision } from '../sessions/session-stream.js';
import { retryTransient } from '../sessions/retry-transient.js';
import { Stopped, type StopReason } from '../sessions/stopped.js';
import { EarlyTools } from './early-tools.js';
import { CallPrefetch } from './prefetch-call.js';
import type { CallPreparer, TurnContext } from './prepare-call.js';
import { TurnContexts } from './turn-contexts.js';
import { releaseCalls } from './release-calls.js';
import { ReservesInCommit } from './reserve-in-commit.js';
import type { AgentPrompts } from './reserve-in-commit.js';
import type { CallBudget } from './reserve-budget.js';
import { logCharge, settlementInCommit } from './settle-calls.js';
import type { Failpoint, RecordOptions, StepContext } from './step-context.js';
import type { TurnPolicy } from './turn-policy.js';
import type { ActiveStep, TurnSteps } from './turn-steps.js';
import { turnContext } from './turn-telemetry.js';

export interface DriverDeps {
  readonly steps: TurnSteps;
  readonly policy: TurnPolicy;
  readonly preparer: CallPreparer;
  readonly budget: CallBudget;
  readonly agentPrompts: AgentPrompts;
  readonly failpoint: Failpoint;
  readonly logger: Logger;
}

/** Made once, because each turn ends with a stop, and an error's stack costs more than the rest. */
const STOPS: Readonly<Record<StopReason, Stopped>> = {
  cancelled: new Stopped('cancelled'),
  lost: new Stopped('lost'),
  draining: new Stopped('draining'),
  deadline: new Stopped('deadline'),
};

const abort = (controller: AbortController, reason: StopReason): void => controller.abort(STOPS[reason]);

/**
 * Drives the turns of one session, as long as this process holds its lease. It performs one step
 * after another, until the session is idle or waits for an approval or a tool.
 */
export class TurnDriver implements SessionDriver {
  /**
   * Aborts even the recording of outcomes: another process holds the session, or this one has to
   * exit.
   */
  private recording = new AbortController();
  private current: { readonly turnId: string; readonly controller: AbortController } | null = null;
  private running: Promise<void> | null = null;
  private isWoken = false;
  private isStopped = false;
  private readonly contexts: TurnContexts;
  private readonly prefetch: CallPrefetch;
  private readonly reserves: ReservesInCommit;
  private readonly earlyTools: EarlyTools;

  constructor(
    private readonly deps: DriverDeps,
    private readonly actor: SessionActor,
  ) {
    const { workspace } = actor;
    this.contexts = new TurnContexts(deps, actor);
    const contextOf = (fold: SessionFold): Promise<TurnContext> => this.contexts.of(fold);
    this.reserves = new ReservesInCommit(deps, workspace);
    this.prefetch = new CallPrefetch(deps, workspace, contextOf, () => this.epoch(), this.reserves);
    this.earlyTools = new EarlyTools(deps.policy, actor, (turnId, call, signal) =>
      deps.steps.runToolEarly({ actor, signal, confirmLease: this.confirmLease(signal) }, turnId, call),
    );
  }

  wake(): void {
    this.isWoken = true;
    if (this.isStopped) return;
    this.running ??= this.run()
      .catch((error: unknown) => this.deps.logger.error({ err: error }, 'session release failed'))
      .finally(() => (this.running = null));
  }

  prefetchContext(turn: UpcomingTurn): void {
    void this.contexts.request(turn).catch(() => undefined);
  }

  reserveInCommit(state: SessionState): Pick<Decision, 'extension'> {
    const reserve = this.reserves.extensionFor(state);
    return reserve ? { extension: reserve } : {};
  }

  isWorking(): boolean {
    return this.running !== null;
  }

  async stop(graceMs: number): Promise<void> {
    this.isStopped = true;
    this.stopStep('draining');
    const over = new AbortController();
    await Promise.race([this.running, sleep(graceMs, over.signal).catch(() => undefined)]);
    over.abort();
    abort(this.recording, 'draining');
    await releaseCalls(this.deps.policy, this.actor, this.deps.logger);
    await this.running;
  }

  onAppending(...[fold, reserved]: Parameters<AppendListener>): void {
    const { state } = this.actor.fold();
    this.prefetch.onAppending(fold, state.open?.call ?? null, reserved);
    this.earlyTools.onAppending(fold?.state ?? null, state);
  }

  onChange(): void {
    if (!this.actor.lease.held()) {
      abort(this.recording, 'lost');
      this.stopStep('lost');
      return;
    }
    const open = this.actor.known()?.state.open;
    // The cancel of a queued turn has ended it without a step.
    if (open?.cancelRequested || open?.turnId !== this.current?.turnId) this.stopStep('cancelled');
  }

  private stopStep(reason: StopReason): void {
    if (this.current) abort(this.current.controller, reason);
  }

  private epoch(): number | null {
    return this.actor.lease.held()?.epoch ?? null;
  }

  private async run(): Promise<void> {
    do {
      this.isWoken = false;
      this.recording = new AbortController();
      if (!this.actor.lease.held()) return;
      // The agent of a turn that is driven stays in the cache.
      const unpin = this.pinAgent();
      await this.drive().catch((error: unknown) => this.releaseAfterFailure(error));
      unpin();
    } while (this.isWoken && !this.isStopped);
  }

  private pinAgent(): () => void {
    const { workspace } = this.actor;
    return this.deps.policy.agents.pin(workspace, this.actor.known()?.state.started?.agentId ?? '');
  }

  /** Reads the facts of the turn's agent if this process does not have them. Returns true then. */
  private async loadAgent(agentId = ''): Promise<boolean> {
    const { actor } = this;
    const { policy, logger } = this.deps;
    if (policy.agents.find(actor.workspace, agentId) !== undefined) return false;
    const load = () => policy.agents.load(actor.workspace, agentId);
    await retryTransient(load, this.recording.signal, logger);
    return true;
  }

  private async drive(): Promise<void> {
    const { actor } = this;
    let retryAfterMs = 0;
    // The first step of a turn that is taken over may be a tool call: it needs the agent's tools.
    await this.loadAgent(actor.fold().state.started?.agentId);
    for (;;) {
      const { state, origins } = actor.fold();
      const step = nextStep(state, this.deps.policy.of(actor.workspace, state), actor.inFlight());
      const turn = state.open;
      if (!actor.lease.held() || !turn || step.kind === 'idle') return;
      // The answer to the approval, or the agent's resume, wakes the driver.
      if (step.kind === 'await_approvals') return;
      if (step.kind === 'await_resume') {
        if (await this.loadAgent(state.started?.agentId)) continue;
        return;
      }
      if (this.isStopped || (step.kind === 'begin_call' && !canBegin(step, this.allowedCalls()))) return;
      const { workspace, sessionId } = actor;
      const { turnId } = turn;
      const logContext = turnContext(origins[turnId], { workspace, sessionId, turnId });
      retryAfterMs = await runWithContext(logContext, () => this.perform(turn, step, retryAfterMs));
      // The retry of the tool wakes the driver.
      if (step.kind === 'await_tools') return;
    }
  }

  private async perform(turn: OpenTurn, step: ActiveStep, retryAfterMs: number): Promise<number> {
    const controller = new AbortController();
    const epoch = this.epoch();
    this.current = { turnId: turn.turnId, controller };
    if (turn.cancelRequested) abort(controller, 'cancelled');
    const context = this.stepContext(turn, controller.signal);
    // Only a model call has a deadline here: the sandbox enforces a tool's.
    const deadlineMs = step.kind === 'run_call' && this.deps.budget.attemptMsOf(step.call, context.agent);
    const deadline = deadlineMs && setTimeout(() => abort(controller, 'deadline'), deadlineMs).unref();
    try {
      return await this.deps.steps.perform(context, step, retryAfterMs);
    } catch (error) {
      // The fold contains the cancel: the next step is decided with it.
      if (error instanceof Stopped && error.reason === 'cancelled') return 0;
      // Metering or the sandbox learned of a newer epoch before this process did.
      if (error instanceof Stopped && error.reason === 'lost' && this.epoch() === epoch)
        this.actor.lease.markLost();
      throw error;
    } finally {
      if (deadline) clearTimeout(deadline);
      this.current = null;
    }
  }

  private stepContext({ turnId, content }: OpenTurn, signal: AbortSignal): StepContext {
    const { deps, actor } = this;
    const { started } = actor.fold().state;
    const { agentId = '', sessionKey = '' } = started ?? {};
    const turn = { turnId, content, agentId, sessionKey };
    return {
      actor,
      agent: deps.policy.findAgent(actor.workspace, agentId),
      signal,
      context: () => this.contexts.request(turn),
      takePrefetched: (call) => this.prefetch.take(call),
      takeEarlyTool: (callId) => this.earlyTools.take(callId, signal),
      confirmLease: this.confirmLease(signal),
      failpoint: (name) => deps.failpoint(name, actor.sessionId),
      record: (command, options) => this.record(command, options),
    };
  }

  /** Returns the check that this process holds the session. */
  private confirmLease(signal: AbortSignal): StepContext['confirmLease'] {
    return async () => {
      // While the log is unavailable the owner is unknown, and no call is started.
      const isHeld = await retryTransient(() => this.actor.lease.confirm(), signal, this.deps.logger);
      if (!isHeld) throw new Stopped('lost');
    };
  }

  private async record(
    command: SessionCommand | null,
    { ignoresInbox = false, onRecorded, ...appends }: RecordOptions = {},
  ): Promise<void> {
    const { actor, deps } = this;
    const { decider } = deps.policy;
    const commit = () =>
      actor.commit(({ state }) => {
        // Without its lease a driver records nothing, not even a correct outcome.
        if (!actor.lease.held()) throw new Stopped('lost');
        const decided = command ? decider.decide(command, state) : [];
        const next = decided.reduce(decider.evolve, state);
        const begins = this.allowedCalls();
        const context = deps.policy.contextOf(actor, next, { begins, ignoresInbox });
        const following = followUps(next, context);
        const events = [...decided, ...following];
        const extended = this.extensionFor(events, following.reduce(decider.evolve, next));
        return decided.length > 0
          ? { ...appends, events, ...extended, isOfCommand: true }
          : { events, ...extended };
      });
    const committed = await retryTransient(commit, this.recording.signal, deps.logger);
    if (committed.outcome !== 'appended') return;
    const { settled } = committed.extended ?? {};
    // A line of the log costs time, and the frames of the commit are sent at the end of this round.
    if (settled) setImmediate(logCharge, deps.logger, actor.fold().state, committed.decision.events, settled);
    deps.budget.settle(actor.workspace, committed.decision.events, settled?.reservationId);
    if ('isOfCommand' in committed.decision) onRecorded?.();
  }

  /** Returns the work of metering for a commit: the call that it ends, and the one that it begins. */
  private extensionFor(events: readonly SessionEvent[], next: SessionState): Pick<Decision, 'extension'> {
    const settle = settlementInCommit(events);
    const begins = events.some(({ type }) => type === 'ModelCallStarted');
    const reserve = begins ? this.reserves.extensionFor(next) : null;
    return settle || reserve ? { extension: { ...settle, ...reserve } } : {};
  }

  private allowedCalls(): FollowUpContext['begins'] {
    if (this.isStopped) return 'none';
    return this.deps.policy.takesTurns() ? 'any' : 'running_turns';
  }

  /**
   * Releases the lease after a failure, as if this process had died: the next driver continues from
   * the log.
   */
  private async releaseAfterFailure(error: unknown): Promise<void> {
    if (error instanceof Stopped) return;
    const { sessionId } = this.actor;
    this.deps.logger.error({ err: error, sessionId }, 'session driver failed');
    await this.actor.release();
  }
}

/** Creates the drivers of the sessions of this process. */
export class TurnDrivers {
  constructor(private readonly deps: DriverDeps) {}

  create(actor: SessionActor): TurnDriver {
    return new TurnDriver(this.deps, actor);
  }
}
