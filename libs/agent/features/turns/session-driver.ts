import { followUps, canBegin, nextStep } from '@antiphon/agent-domain';
import type { FollowUpContext, OpenTurn, SessionCommand, Step } from '@antiphon/agent-domain';
import { rejected } from '@antiphon/kernel';
import { runWithContext } from '@antiphon/observability';
import type { SessionFold } from '../sessions/session-fold.js';
import { agentOf, followUpContext, policyOf } from './turn-policy.js';
import { createCallPrefetch } from './prefetch-call.js';
import type { SessionActor } from '../sessions/session-actor.js';
import { settleCalls } from './settle-call.js';
import { Stopped, untilAnswered } from './stop.js';
import type { StopReason } from './stop.js';
import { askContext } from './turn-context.js';
import type { ContextDeps, TurnContext } from './turn-context.js';
import { turnContext } from './turn-telemetry.js';
import { performStep } from './turn-steps.js';
import type { StepDeps } from './turn-steps.js';
import type { StepContext } from './step-context.js';

/** Carries out what has to happen in one session, as long as this process holds its lease. */
export interface SessionDriver {
  /** Goes to work unless it is at work already. */
  wake(): void;
  /** Asks early for what a turn will need; a failure is only a head start lost. */
  prepare(turn: ComingTurn): void;
  isWorking(): boolean;
  /** Ends the work: what can be recorded within `graceMs` is. Answers when nothing is at work any more. */
  end(graceMs: number): Promise<void>;
}

/** Dependencies of a driver: those of its steps, and of the context of a turn. */
export interface DriverDeps extends StepDeps, ContextDeps {}

export interface ComingTurn {
  readonly turnId: string;
  readonly content: string;
  readonly agentId: string;
  readonly sessionKey: string;
}

const abort = (controller: AbortController, reason: StopReason): void => controller.abort(reason);

/** One driver for each actor; it takes the actor's `onChange`. */
export const createSessionDriver = (services: DriverDeps, actor: SessionActor): SessionDriver => {
  const { log, logger, times } = services;
  /** Stops even the recording of outcomes: the session is another's, or the process has to end now. */
  let life = new AbortController();
  let stepping: { readonly turnId: string; readonly controller: AbortController } | null = null;
  let working: Promise<void> | null = null;
  let kicked = false;
  let ended = false;
  let context: { readonly turnId: string; readonly asked: Promise<TurnContext> } | null = null;

  actor.onChange(() => {
    if (!actor.lease.held()) {
      abort(life, 'lost');
      stopStep('lost');
      return;
    }
    const open = actor.known()?.state.open;
    // A turn that was waiting when its cancel came has ended with it.
    if (open?.cancelRequested || open?.turnId !== stepping?.turnId) stopStep('cancelled');
  });
  const stopStep = (reason: StopReason): void => stepping?.controller.abort(reason);

  const begins = (): FollowUpContext['begins'] =>
    ended ? 'none' : services.takesTurns() ? 'any' : 'running_turns';

  const ask = (turn: ComingTurn): Promise<TurnContext> => {
    if (context?.turnId === turn.turnId) return context.asked;
    const agent = agentOf(services, turn.agentId);
    if (!agent) return Promise.reject(rejected('AGENT.NOT_FOUND', `there is no agent "${turn.agentId}"`));
    const session = { sessionKey: turn.sessionKey, seen: actor.fold().version };
    const asked = askContext(services, actor, agent, session, turn.content);
    context = { turnId: turn.turnId, asked };
    asked.catch(() => {
      if (context?.asked === asked) context = null;
    });
    return asked;
  };

  const contextOf = ({ state }: SessionFold): Promise<TurnContext> => {
    const { agentId = '', sessionKey = '' } = state.started ?? {};
    const { turnId = '', content = '' } = state.open ?? {};
    return ask({ turnId, content, agentId, sessionKey });
  };
  const epochNow = (): number | null => actor.lease.held()?.epoch ?? null;
  const ahead = createCallPrefetch(services, actor.workspace, contextOf, epochNow);
  actor.onComing((fold) => ahead.coming(fold, actor.fold().state.open?.call ?? null));

  const record = async (command: SessionCommand | null): Promise<void> => {
    const commit = () =>
      actor.commit(({ state }) => {
        // Without its lease a driver has nothing to say, however true it is.
        if (!actor.lease.held()) throw new Stopped('lost');
        const decided = command ? log.decider.decide(command, state) : [];
        const next = decided.reduce(log.decider.evolve, state);
        const context = followUpContext(services, actor, next, begins());
        return { events: [...decided, ...followUps(next, context)] };
      });
    const committed = await untilAnswered(commit, life.signal, logger);
    if (committed.outcome === 'appended') settleCalls(services, actor.workspace, committed.decision.events);
  };

  const workOn = ({ turnId, content }: OpenTurn, signal: AbortSignal): StepContext => {
    const { started } = actor.fold().state;
    const turn = { turnId, content, agentId: started?.agentId ?? '', sessionKey: started?.sessionKey ?? '' };
    return {
      services,
      actor,
      agent: agentOf(services, turn.agentId),
      signal,
      context: () => ask(turn),
      readyAhead: (call) => ahead.take(call),
      confirm: async () => {
        // While the log is away nobody can say whose the session is, and nothing is begun.
        const held = await untilAnswered(() => actor.lease.confirm(), signal, logger);
        if (!held) throw new Stopped('lost');
      },
    };
  };

  const take = async (
    turn: OpenTurn,
    step: Exclude<Step, { kind: 'idle' | 'await_approvals' }>,
    retryAfterMs: number,
  ): Promise<number> => {
    const controller = new AbortController();
    const epoch = epochNow();
    stepping = { turnId: turn.turnId, controller };
    if (turn.cancelRequested) abort(controller, 'cancelled');
    // Only a model call has a deadline here: a tool's is the sandbox's own.
    const deadline =
      step.kind === 'run_call'
        ? setTimeout(() => abort(controller, 'deadline'), times.attemptMs).unref()
        : undefined;
    try {
      return await performStep(workOn(turn, controller.signal), step, retryAfterMs, record);
    } catch (error) {
      // The fold knows of the cancel: the next step is decided with it.
      if (error instanceof Stopped && error.reason === 'cancelled') return 0;
      // Metering or the sandbox knew before the lease did.
      if (error instanceof Stopped && error.reason === 'lost' && epochNow() === epoch) actor.lease.lost();
      throw error;
    } finally {
      clearTimeout(deadline);
      stepping = null;
    }
  };

  const drive = async (): Promise<void> => {
    let retryAfterMs = 0;
    for (;;) {
      const { state, origins } = actor.fold();
      const step = nextStep(state, policyOf(services, actor.workspace, state), actor.hands());
      const turn = state.open;
      if (!actor.lease.held() || !turn || step.kind === 'idle') return;
      // The answer wakes whoever drives then.
      if (step.kind === 'await_approvals') return;
      if (ended || (step.kind === 'begin_call' && !canBegin(step, begins()))) return;
      const { workspace, sessionId } = actor;
      const { turnId } = turn;
      const about = turnContext(origins[turnId], { workspace, sessionId, turnId });
      retryAfterMs = await runWithContext(about, () => take(turn, step, retryAfterMs));
      // Whoever makes the next try wakes this driver.
      if (step.kind === 'await_tools') return;
    }
  };

  /** A driver that failed is a driver that died: it lets go, and whoever takes the session next goes on from the log. */
  const letGo = async (error: unknown): Promise<void> => {
    if (error instanceof Stopped) return;
    logger.error({ err: error, sessionId: actor.sessionId }, 'a driver failed and gives its session back');
    await actor.release();
  };

  const run = async (): Promise<void> => {
    do {
      kicked = false;
      life = new AbortController();
      if (!actor.lease.held()) return;
      await drive().catch(letGo);
    } while (kicked && !ended);
  };

  return {
    wake: () => {
      kicked = true;
      if (ended) return;
      working ??= run()
        .catch((error: unknown) => logger.error({ err: error }, 'a session could not be given back'))
        .finally(() => (working = null));
    },
    prepare: (turn) => void ask(turn).catch(() => undefined),
    isWorking: () => working !== null,
    end: async (graceMs) => {
      ended = true;
      stopStep('draining');
      const hurry = setTimeout(() => abort(life, 'draining'), graceMs);
      await working;
      clearTimeout(hurry);
    },
  };
};
