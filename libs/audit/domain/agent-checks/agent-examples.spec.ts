// Examples for the specs of this folder; it contains no test itself.
import type {
  AgentEvent,
  AgentMessageEvent,
  AgentTreeEvent,
  SessionEvent,
  TaskEvent,
} from '@antiphon/contracts/agent';
import type { BudgetEvent, BudgetLimitEvent } from '@antiphon/contracts/metering';
import type { EventPlace, Parsed } from '../audit-check.js';
import { TIME, uuid } from '../audit-examples.spec.js';

type Any =
  AgentEvent | AgentTreeEvent | AgentMessageEvent | TaskEvent | SessionEvent | BudgetEvent | BudgetLimitEvent;

/** Any event of these types, with the fields that a check reads. */
export const fact = <E extends Any>(type: E['type'], data: object): E =>
  ({ type, schemaVersion: 1, data }) as unknown as E;

export const by = { actor: 'local', reason: null, at: TIME };
export const agentEvent = (type: AgentEvent['type'], agentId: string, data: object = {}) =>
  fact<AgentEvent>(type, { agentId, ...by, ...data });
export const spawned = (agentId: string, parentId: string | null = null) =>
  agentEvent('AgentSpawned', agentId, { parentId, rootId: 'root', depth: parentId ? 1 : 0 });
export const terminated = (agentId: string) => agentEvent('AgentTerminated', agentId, { result: null });

export const treeEvent = (type: AgentTreeEvent['type'], data: object) =>
  fact<AgentTreeEvent>(type, { rootId: 'root', at: TIME, ...data });
export const admitted = (agentId: string, parentId: string | null = 'root', depth = parentId ? 1 : 0) =>
  treeEvent('TreeMemberAdmitted', { agentId, parentId, depth });
export const left = (agentId: string) => treeEvent('TreeMemberLeft', { agentId });

export const message = (n: number, to: string | null, data: object = {}) =>
  fact<AgentMessageEvent>('AgentMessageSent', {
    messageId: uuid(n),
    ...{ type: 'AgentSpoke', from: 'local', content: { text: 'hi' }, causeId: null, sentAt: TIME },
    to: to === null ? { kind: 'everyone' } : { kind: 'agent', agentId: to },
    ...data,
  });

/** An event with the stream that it is in. */
export type InStream<E> = readonly [streamId: string, event: E];

/** Assigns places of one log to events, with a version for each stream. */
export const placeIn = <E>(events: readonly InStream<E>[], first = 1): Parsed<E>[] => {
  const versions = new Map<string, number>();
  return events.map(([streamId, content], index) => {
    const streamVersion = (versions.get(streamId) ?? 0) + 1;
    versions.set(streamId, streamVersion);
    const at: EventPlace = {
      ...{ position: first + index, workspace: 'default', streamId, streamVersion },
      eventId: uuid(first + index),
    };
    return { place: at, content, epoch: undefined };
  });
};
