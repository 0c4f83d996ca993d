import { followUps, maxRetryDelay } from '@antiphon/agent-domain';
import type { SessionCommand, SessionState, TurnToolCall } from '@antiphon/agent-domain';
import { isAppError, isoTime } from '@antiphon/kernel';
import { runWithContext } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import { makeToolCall, unknownOutcome } from './tool-call.js';
import type { ToolCallDeps, ToolCallContext } from './tool-call.js';
import { followUpContext } from './turn-policy.js';
import type { PolicyDeps } from './turn-policy.js';
import type { SessionRegistry } from '../sessions/session-registry.js';
import { Stopped, untilAnswered } from './stop.js';
import type { ToolRetryRef } from './tool-retries.js';
import { observeTool, turnContext } from './turn-telemetry.js';

/** Which call: all that a Temporal workflow is told of it. */
export type ToolCallRef = Omit<ToolRetryRef, 'agentId'>;

/** Where a call stands: over, or due for its next try in so many ms. */
export interface RetryProgress {
  readonly over: boolean;
  readonly waitMs: number;
}

/** Makes later tries of tool calls, in whichever process; each is safe to repeat. */
export interface RetryTool {
  /** Reads the log. */
  read(call: ToolCallRef): Promise<RetryProgress>;
  /** Makes the next try, and leaves its outcome, or when the one after it is due, in the log. */
  again(call: ToolCallRef): Promise<RetryProgress>;
}

export interface RetryToolDeps extends ToolCallDeps, PolicyDeps {
  readonly logger: Logger;
}

type Found = Awaited<ReturnType<SessionRegistry['requireSession']>>;
interface WaitingCall {
  readonly turnId: string;
  readonly call: TurnToolCall;
}

/** The call, while it waits for another try or has one under way. */
const waitingCall = ({ open }: SessionState, callId: string): WaitingCall | null => {
  const call = open?.steps.flatMap(({ calls }) => calls).find((one) => one.callId === callId);
  return open && call?.status === 'requested' && call.deferred ? { turnId: open.turnId, call } : null;
};

const OVER: RetryProgress = { over: true, waitMs: 0 };
const LOST = 'the process that tried this tool again was lost';

/** Nothing ends a try but its answer: what its turn thinks of it meanwhile, its driver records. */
const unstoppable = new AbortController().signal;

export const createRetryTool = (services: RetryToolDeps, registry: SessionRegistry): RetryTool => {
  const { log, clock, logger } = services;

  const progressOf = ({ actor }: Found, callId: string): RetryProgress => {
    const waiting = waitingCall(actor.fold().state, callId);
    if (!waiting) return OVER;
    const dueAt = Date.parse(waiting.call.deferred?.dueAt ?? '');
    // Another process wrote when it is due, by its own clock.
    const waitMs = Math.min(Math.max(0, dueAt - clock.now()), maxRetryDelay(waiting.call));
    return { over: false, waitMs };
  };

  /** Also without the lease: the driver may be another process, which is told. */
  const commitOnce = async ({ actor }: Found, command: SessionCommand): Promise<void> => {
    await actor.commit(({ state }) => {
      const decided = log.decider.decide(command, state);
      if (!actor.lease.held() || decided.length === 0) return { events: decided };
      const next = decided.reduce(log.decider.evolve, state);
      return {
        events: [...decided, ...followUps(next, followUpContext(services, actor, state))],
      };
    });
  };
  /** A lease that is lost on the way changes nothing: what a try brought belongs to the call. */
  const commit = (found: Found, command: SessionCommand): Promise<void> =>
    untilAnswered(
      () =>
        commitOnce(found, command).catch((error: unknown) => {
          if (!isAppError(error) || error.code !== 'LOG.FENCED') throw error;
          return commitOnce(found, command);
        }),
      unstoppable,
      logger,
    );

  const workOn = ({ actor, claim }: Found): ToolCallContext => ({
    services,
    actor,
    signal: unstoppable,
    confirm: () => Promise.resolve(),
    epoch: () => actor.lease.held()?.epoch ?? (claim.owned ? 0 : claim.epoch),
  });

  const makeTry = async (found: Found, { turnId, call }: WaitingCall): Promise<void> => {
    const now = (): string => isoTime(clock);
    const claimCall = (callId: string) =>
      commit(found, { type: 'ClaimTools', data: { turnId, callIds: [callId] }, now: now() });
    const end = call.claimed
      ? unknownOutcome(turnId, call.callId, LOST)
      : await observeTool(call, () => makeToolCall(workOn(found), turnId, call, claimCall));
    await services.failpoint('agent.tool.answered', found.actor.sessionId);
    await commit(found, { type: 'RecordToolOutcomes', data: { outcomes: [end] }, now: now() });
  };

  const goOn = ({ actor, driver, claim }: Found): void => {
    registry.wakeDriver({ actor, driver, claim });
  };

  const again = async (found: Found, callId: string): Promise<RetryProgress> => {
    const { workspace, sessionId } = found.actor;
    const { state, origins } = found.actor.fold();
    const waiting = waitingCall(state, callId);
    if (!waiting || state.open?.cancelRequested) return OVER;
    const { turnId } = waiting;
    const about = turnContext(origins[turnId], { workspace, sessionId, turnId });
    await runWithContext(about, () => makeTry(found, waiting)).catch((error: unknown) => {
      // Another driver has come to the sandbox first: what it has recorded says what is left to do.
      if (!(error instanceof Stopped)) throw error;
    });
    return progressOf(found, callId);
  };

  return {
    read: async ({ workspace, sessionId, callId }) => {
      const found = await registry.requireSession(workspace, sessionId);
      goOn(found);
      return progressOf(found, callId);
    },
    again: async ({ workspace, sessionId, callId }) => {
      const found = await registry.requireSession(workspace, sessionId);
      try {
        return await again(found, callId);
      } finally {
        goOn(found);
      }
    },
  };
};
