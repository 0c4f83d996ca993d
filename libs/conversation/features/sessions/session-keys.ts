import { SessionKeyBound, sessionKeyOf, sessionKeyStream } from '@antiphon/contracts/agent';
import type { SessionAddress } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import type { EventStore, StreamAppend } from '@antiphon/event-store';
import { toStorable } from '@antiphon/kernel';
import type { Ids, JsonObject } from '@antiphon/kernel';
import { keyIdOf } from '@antiphon/agent-log';

/** Session that a session key is bound to. */
export interface KeyBinding {
  readonly streamId: string;
  /** Version of the key's event stream, 0 if the key was never bound. */
  readonly version: number;
  readonly sessionId: string | null;
}

/**
 * Reads the binding from the log. Another process may bind the key to a new session at any time, so
 * an append that relies on a cached binding guards its version.
 */
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

/** Returns the session key of an address, with every part in a form that the log can store. */
export const keyOf = (address: SessionAddress): string =>
  sessionKeyOf({
    agentId: address.agentId,
    channel: toStorable(address.channel),
    account: toStorable(address.account),
    peer: toStorable(address.peer),
  });

/**
 * Returns the append that binds a key to a session. It conflicts if the key was bound since the
 * read.
 */
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
