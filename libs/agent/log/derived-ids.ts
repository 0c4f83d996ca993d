import { v5 } from 'uuid';
import { digestOf } from '@antiphon/event-store';
import { createBoundedMap } from '@antiphon/kernel';
import type { JsonValue } from '@antiphon/kernel';

// Derived ids depend on the log alone, so that a second driver derives the same ones.
const NAMESPACE = '8b6f3c1e-5d0a-5f43-9a64-2f1f0a4d7c11';

/** Returns the id of the tool call at an index of an attempt's answer. */
export const callIdOf = (sessionId: string, attempt: number, index: number): string =>
  v5(`call/${attempt}/${index}`, sessionId);

/** Returns the id of the event stream that binds a session key. */
export const keyIdOf = (workspace: string, sessionKey: string): string =>
  v5(`${workspace}\n${sessionKey}`, NAMESPACE);

/** UUIDs of agents by the name that they are derived from: each step of a turn needs one. */
const agentUuids = createBoundedMap<string>(10_000);

/** Returns the UUID of an agent, which the ids of its event streams take. */
export const agentUuidOf = (workspace: string, agentId: string): string => {
  const name = `${workspace}\nagent/${agentId}`;
  const known = agentUuids.get(name);
  if (known !== undefined) return known;
  const uuid = v5(name, NAMESPACE);
  agentUuids.put(name, uuid);
  return uuid;
};

/** Returns the id of a call's approval: a call has at most one. */
export const approvalIdOf = (callId: string): string => v5('approval', callId);

/** Returns the digest of a tool call's name and arguments. */
export const toolDigestOf = (name: string, input: JsonValue): string => digestOf({ name, input });

/** Returns the UUID of a topic in the id of its event stream. */
export const topicUuidOf = (workspace: string, topic: string): string =>
  v5(`${workspace}\ntopic/${topic}`, NAMESPACE);

/** Returns the id of the message that reports the end of a child or a task: each has at most one. */
export const endMessageIdOf = (workspace: string, kind: 'child' | 'task', id: string): string =>
  v5(`${workspace}\n${kind}-ended/${id}`, NAMESPACE);

/**
 * Returns the id of the chat with a name: a name has at most one chat, in any case of its letters.
 */
export const chatIdOf = (workspace: string, name: string): string =>
  v5(`${workspace}\nchat/${name.normalize('NFC').toLowerCase()}`, NAMESPACE);

/**
 * Returns the UUID of a workspace's file tree, or of the tree of a forked session, in the id of its
 * event stream.
 */
export const fileTreeIdOf = (workspace: string, forkedSessionId?: string): string =>
  v5(`${workspace}\nfile-tree/${forkedSessionId ?? ''}`, NAMESPACE);

/** Returns the UUID of a workspace's erasures, in the id of their event stream. */
export const fileErasuresIdOf = (workspace: string): string => v5(`${workspace}\nfile-erasures`, NAMESPACE);

/** Returns the UUID of the plan of a file, in the id of its event stream. */
export const planIdOf = (workspace: string, path: string): string =>
  v5(`${workspace}\nplan/${path}`, NAMESPACE);

/** Returns the id of a delivery of a channel: a platform's id of a delivery has one. */
export const channelMessageIdOf = (workspace: string, channel: string, deliveryId: string): string =>
  v5(`${workspace}\nchannel/${channel}/delivery/${deliveryId}`, NAMESPACE);

/** Returns the UUID of the peers of a channel, in the id of their event stream. */
export const channelPeersIdOf = (workspace: string, channel: string): string =>
  v5(`${workspace}\nchannel/${channel}/peers`, NAMESPACE);

/** Returns the UUID of a workspace's connected providers, in the id of their event stream. */
export const providersIdOf = (workspace: string): string => v5(`${workspace}\nproviders`, NAMESPACE);

/** Returns the id of the stream of all secrets of a workspace. */
export const secretsIdOf = (workspace: string): string => v5(`${workspace}\nsecrets`, NAMESPACE);
