import { AgentEvent, agentStream } from '@antiphon/contracts/agent';
import { agentDecider } from '@antiphon/agents-domain';
import type { AgentRecord } from '@antiphon/agents-domain';
import { AggregateStore } from '@antiphon/event-store';
import type { EventStore } from '@antiphon/event-store';
import type { Ids } from '@antiphon/kernel';
import { agentUuidOf, eventForms } from '@antiphon/agent-log';

/** Event streams of agents. */
export type AgentStreams = AggregateStore<AgentRecord, AgentEvent>;

export const createAgentStreams = (
  store: Pick<EventStore, 'append' | 'readStream'>,
  ids: Ids,
): AgentStreams =>
  new AggregateStore({
    ...{ store, decider: agentDecider, ...eventForms(AgentEvent, ids, null) },
    streamOf: (workspace, agentId) => agentStream(agentUuidOf(workspace, agentId)),
  });
