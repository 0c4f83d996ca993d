import { agentStream } from '@antiphon/contracts/agent';
import type { HopVerdict } from '@antiphon/conversation-domain';
import { createFactLog } from '@antiphon/event-store';
import type { EventStore } from '@antiphon/event-store';
import { isAppError, isoTime } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { v5 } from 'uuid';
import type { ConfiguredAgents } from '@antiphon/agents-features';
import { agentUuidOf, eventMetadata } from '@antiphon/agent-log';
import type { NativeCall } from '@antiphon/conversation-features';

export interface BlockedRequestsDeps {
  readonly store: EventStore;
  readonly configuredAgents: Pick<ConfiguredAgents, 'record'>;
  readonly clock: Clock;
}

/** Records requests from agent to agent that are refused, at the agent that made them. */
export class BlockedRequests {
  constructor(private readonly deps: BlockedRequestsDeps) {}

  /** The id of the event is derived from the call: a repeated call adds no second one. */
  async record(
    { workspace, sessionId, agentId, turn, callId }: NativeCall,
    { code, chain, cause }: Extract<HopVerdict, { allowed: false }>,
  ): Promise<void> {
    const { store, configuredAgents, clock } = this.deps;
    // Facts of an agent begin with its `AgentSpawned`.
    await configuredAgents.record(workspace);
    const data = {
      ...{ agentId, actor: 'runtime', reason: null, cause, at: isoTime(clock) },
      ...{ code, sessionId, turnId: turn.turnId, chain: [...chain] },
    };
    const event = { eventId: v5('blocked', callId), type: 'AgentBlocked', schemaVersion: 1, data };
    const log = createFactLog(store, (_workspace, id) => agentStream(agentUuidOf(workspace, id)));
    try {
      await log.appendAt(workspace, agentId, 'any', [{ ...event, metadata: eventMetadata() }]);
    } catch (error) {
      // An earlier driver of the turn recorded it, at another time.
      if (!isAppError(error) || error.code !== 'LOG.EVENT_ID_CONFLICT') throw error;
    }
  }
}
