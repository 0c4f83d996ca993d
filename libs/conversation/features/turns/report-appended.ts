import { isTurnEnd, taskOfSessionKey } from '@antiphon/contracts/agent';
import type { Clock } from '@antiphon/kernel';
import type { NatsLink } from '@antiphon/messaging';
import type { AgentMetricsSampler } from '@antiphon/agents-features';
import type { FoldedEvent } from '../sessions/session-fold.js';
import type { StreamDeps } from '../sessions/session-stream.js';
import { TURN_END_SUBJECT } from '../sessions/turn-ends.js';
import { reportEndedTurns } from './turn-telemetry.js';
import { createToken } from '@antiphon/service-host';

/** A turn that has ended, or waits for a person. */
export interface SettledTurn {
  readonly workspace: string;
  readonly agentId: string;
  readonly sessionId: string;
  readonly turnId: string;
  /** True if it failed because its drivers were lost again and again. */
  readonly hasLostDrivers: boolean;
}
/** Called for each turn of an agent that has ended, or waits for an approval. */
export const ON_TURN_SETTLED = createToken<(turn: SettledTurn) => void>('ON_TURN_SETTLED');

const settledTurns = (events: readonly FoldedEvent[]): Pick<SettledTurn, 'turnId' | 'hasLostDrivers'>[] =>
  events.flatMap(({ event }) => {
    if (!isTurnEnd(event.type) && event.type !== 'ApprovalRequested') return [];
    const { turnId } = event.data as { readonly turnId: string };
    const hasLostDrivers = event.type === 'TurnFailed' && event.data.code === 'TURN.DRIVER_LOST';
    return [{ turnId, hasLostDrivers }];
  });

/** Tells the process that assigns tasks of the end of a turn. A lost notification costs a poll. */
const announceTaskTurn = (
  { isConnected, connection }: NatsLink,
  sessionId: string,
  sessionKey: string,
  events: readonly FoldedEvent[],
): void => {
  if (taskOfSessionKey(sessionKey) === null || !events.some(({ event }) => isTurnEnd(event.type))) return;
  if (isConnected() && !connection.isDraining()) connection.publish(TURN_END_SUBJECT, sessionId);
};

/** Creates the listener that reports appended events to the metrics and to waiting processes. */
export const createReportAppended =
  (
    clock: Clock,
    metrics: Pick<AgentMetricsSampler, 'record'>,
    nats: NatsLink,
    onTurnSettled: (turn: SettledTurn) => void,
  ): StreamDeps['onAppended'] =>
  (events, { workspace, sessionId }, { state }) => {
    const agentId = state.started?.agentId ?? '';
    reportEndedTurns(events, { workspace, sessionId, agentId }, clock.now());
    metrics.record(
      workspace,
      agentId,
      events.map(({ event }) => event),
    );
    announceTaskTurn(nats, sessionId, state.started?.sessionKey ?? '', events);
    for (const settled of settledTurns(events)) onTurnSettled({ workspace, agentId, sessionId, ...settled });
  };
