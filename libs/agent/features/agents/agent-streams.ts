import { AgentEvent, agentStream } from '@antiphon/contracts/agent';
import { agentDecider } from '@antiphon/agent-domain';
import type { AgentRecord } from '@antiphon/agent-domain';
import { AggregateStore } from '@antiphon/event-store';
import type { EventStore } from '@antiphon/event-store';
import type { Ids } from '@antiphon/kernel';
import { agentUuidOf } from '../derived-ids.js';
import { eventForms } from '../event-envelope.js';

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
