import { SessionKeyBound, sessionKeyOf, sessionKeyStream } from '@antiphon/contracts/agent';
import type { SessionAddress } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import type { AgentConfig, AntiphonConfig } from '@antiphon/config';
import type { EventStore, StreamAppend } from '@antiphon/event-store';
import { notFound, toStorable } from '@antiphon/kernel';
import type { Ids, JsonObject } from '@antiphon/kernel';
import { keyIdOf } from '../derived-ids.js';

/** What a session key means now. */
export interface KeyBinding {
  readonly streamId: string;
  /** Of the key's event stream, 0 when nothing was said under this key yet. */
  readonly version: number;
  readonly sessionId: string | null;
}

/** Reads it anew each time: another process may have bound the key to a new session a moment ago. */
export const readBinding = async (
  store: Pick<EventStore, 'readStream'>,
  workspace: string,
  sessionKey: string,
): Promise<KeyBinding> => {
  const streamId = sessionKeyStream(keyIdOf(workspace, sessionKey));
  const [last] = await store.readStream(workspace, streamId, { backwards: true, limit: 1 });
  if (!last) return { streamId, version: 0, sessionId: null };
  const { sessionId } = SessionKeyBound.shape.data.parse(upcast(last).data);
  return { streamId, version: last.streamVersion, sessionId };
};

/** The address with every part as the log can keep it, and the key that it makes. */
export const keyOf = (address: SessionAddress): string =>
  sessionKeyOf({
    agentId: address.agentId,
    channel: toStorable(address.channel),
    account: toStorable(address.account),
    peer: toStorable(address.peer),
  });

/** Binds a key to a session, if the key still means what was read. */
export const bindKey = (
  { streamId, version }: KeyBinding,
  sessionKey: string,
  sessionId: string,
  ids: Ids,
  metadata: StreamAppend['events'][number]['metadata'],
): StreamAppend => {
  const data: JsonObject = { sessionKey, sessionId };
  const event = { eventId: ids.next(), type: 'SessionKeyBound', schemaVersion: 1, data, metadata };
  return { streamId, expectedVersion: version, events: [event] };
};

/** Throws `AGENT.NOT_FOUND`. */
export const requireAgent = (config: AntiphonConfig, agentId: string): AgentConfig => {
  const agent = config.agents.find(({ id }) => id === agentId);
  if (!agent) throw notFound('AGENT.NOT_FOUND', `there is no agent "${agentId}"`);
  return agent;
};
