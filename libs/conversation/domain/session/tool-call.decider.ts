import type { SessionEvent } from '@antiphon/contracts/agent';
import type {
  ClaimTools,
  RecordToolOutcomes,
  ReleaseTools,
  RequestTools,
  RestartTools,
  SessionCommand,
} from './session-command.js';
import { countLostDrivers } from './retry-policy.js';
import type { OpenTurn, SessionState, TurnToolCall } from './session-state.js';

export type ToolCommand = RequestTools | ClaimTools | RestartTools | ReleaseTools | RecordToolOutcomes;

const TYPES: Readonly<Record<ToolCommand['type'], true>> = {
  RequestTools: true,
  ClaimTools: true,
  RestartTools: true,
  ReleaseTools: true,
  RecordToolOutcomes: true,
};

export const isToolCommand = (command: SessionCommand): command is ToolCommand =>
  Object.hasOwn(TYPES, command.type);

const schemaVersion = 1;

const openTurn = (state: SessionState, turnId: string): OpenTurn | null =>
  state.open?.turnId === turnId ? state.open : null;

const requestTools = ({ data }: RequestTools, state: SessionState): SessionEvent[] => {
  const turn = openTurn(state, data.turnId);
  // No requests after a cancel, and none without a required approval.
  const asked = turn?.cancelRequested
    ? []
    : turn?.steps
        .at(-1)
        ?.calls.filter(({ status, approval }) => status === 'asked' && approval?.status !== 'pending');
  return data.calls.flatMap((request) =>
    (asked ?? [])
      .filter(({ callId }) => callId === request.callId)
      .map(({ name, input }) => ({
        type: 'ToolCallRequested' as const,
        schemaVersion,
        data: {
          turnId: data.turnId,
          attempt: state.attempt,
          name,
          input,
          ...request,
          claims: !request.idempotent,
        },
      })),
  );
};

/** Claims calls once, and not after a cancel. The driver must not send an unclaimed call. */
const claimTools = ({ data }: ClaimTools, state: SessionState): SessionEvent[] => {
  const { turnId, callIds } = data;
  const turn = openTurn(state, turnId);
  if (!turn || turn.cancelRequested) return [];
  return turn.steps
    .flatMap(({ calls }) => calls)
    .filter(({ callId, status, claimed }) => status === 'requested' && !claimed && callIds.includes(callId))
    .map(({ callId, tries }) => ({
      type: 'ToolCallClaimed',
      schemaVersion,
      data: { turnId, callId, tryNumber: tries + 1 },
    }));
};

/** Returns the calls without an outcome of these ids. */
const openCalls = (
  { data: { turnId, callIds } }: RestartTools | ReleaseTools,
  state: SessionState,
): TurnToolCall[] => {
  const calls = openTurn(state, turnId)?.steps.flatMap((step) => step.calls) ?? [];
  return calls.filter(
    ({ callId, status }) => callIds.includes(callId) && (status === 'requested' || status === 'asked'),
  );
};

/** Starts calls again, and counts the processes that they lost. */
const restartTools = (command: RestartTools, state: SessionState): SessionEvent[] =>
  openCalls(command, state).map((call) => ({
    type: 'ToolCallRestarted',
    schemaVersion,
    data: {
      turnId: command.data.turnId,
      callId: call.callId,
      lostDrivers: countLostDrivers(call),
      restartedAt: command.now,
    },
  }));

/** Releases calls once. A claimed or deferred one does not count its processes. */
const releaseTools = (command: ReleaseTools, state: SessionState): SessionEvent[] =>
  openCalls(command, state)
    .filter(({ claimed, deferred, released = false }) => !claimed && !deferred && !released)
    .map(({ callId }) => ({
      type: 'ToolCallReleased',
      schemaVersion,
      data: { turnId: command.data.turnId, callId, releasedAt: command.now },
    }));

const recordOutcomes = ({ data }: RecordToolOutcomes, { open }: SessionState): SessionEvent[] => {
  const waiting = new Set(
    open?.steps
      .flatMap(({ calls }) => calls.filter((call) => call.status === 'requested'))
      .map((c) => c.callId),
  );
  // `delete` returns true once: exactly one outcome a call.
  return data.outcomes
    .filter(({ type, data: { callId } }) =>
      type === 'ToolCallDeferred' ? waiting.has(callId) : waiting.delete(callId),
    )
    .map((outcome) =>
      outcome.type === 'ToolCallFailed' || outcome.type === 'ToolCallUnknown'
        ? { ...outcome, schemaVersion: 2 }
        : { ...outcome, schemaVersion },
    );
};

/** Decides on the tool calls of the open turn. */
export const decideToolCalls = (command: ToolCommand, state: SessionState): SessionEvent[] => {
  switch (command.type) {
    case 'RequestTools':
      return requestTools(command, state);
    case 'ClaimTools':
      return claimTools(command, state);
    case 'RestartTools':
      return restartTools(command, state);
    case 'ReleaseTools':
      return releaseTools(command, state);
    case 'RecordToolOutcomes':
      return recordOutcomes(command, state);
  }
};
