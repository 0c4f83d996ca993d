import { v5 } from 'uuid';
import { keyStream, workspaceStream } from '@antiphon/contracts/keys';
import { createFactLog } from '@antiphon/event-store';
import type { EventStore, NewEvent } from '@antiphon/event-store';
import type { Ids, JsonObject } from '@antiphon/kernel';
import { currentContext } from '@antiphon/observability';

/** Namespace of event ids that derive from a key or a workspace: a repeated append is the same. */
const NAMESPACE = '5f0a6a0e-7c53-5c53-9d0e-3b1f3ad0c2f4';

export type KeyFact = 'KeyCreated' | 'KeyRotated' | 'KeyRevoked';

export type RecordFact = 'AuditRecorded' | 'BackupRecorded';

/** Appends facts of keys, workspaces, audits and backups. */
export interface IdentityLog {
  /** Appends a fact of a key. `step` tells several facts of one type apart. */
  appendKeyFact(
    workspace: string,
    keyId: string,
    fact: KeyFact,
    step: number,
    data: JsonObject,
  ): Promise<void>;
  hasKeyFact(workspace: string, keyId: string, fact: KeyFact, step: number): Promise<boolean>;
  hasKey(workspace: string, keyId: string): Promise<boolean>;
  appendWorkspace(workspace: string, data: JsonObject): Promise<void>;
  hasWorkspace(workspace: string): Promise<boolean>;
  /** Appends the record of an audit or a backup, once for an id. */
  appendRecord(workspace: string, fact: RecordFact, id: string, data: JsonObject): Promise<void>;
}

export const IDENTITY_LOG = Symbol('IdentityLog');

const eventIdOf = (streamId: string, fact: string, step: number): string =>
  v5(`${streamId}/${fact}/${step}`, NAMESPACE);

/** Creates the log of identities. A fact that the log has already is not appended again. */
export const createIdentityLog = (store: EventStore, ids: Ids): IdentityLog => {
  const facts = createFactLog(store, (_workspace, streamId) => streamId);
  const eventOf = (streamId: string, type: string, step: number, data: JsonObject): NewEvent => {
    const context = currentContext();
    return {
      eventId: eventIdOf(streamId, type, step),
      type,
      schemaVersion: 1,
      data,
      metadata: {
        correlationId: context?.correlationId ?? ids.next(),
        ...(context === undefined ? {} : { traceparent: context.traceparent }),
        service: 'gateway',
      },
    };
  };
  const append = async (workspace: string, streamId: string, event: NewEvent): Promise<void> => {
    await facts.appendAt(workspace, streamId, 'any', [event]);
  };
  return {
    appendKeyFact: (workspace, keyId, fact, step, data) =>
      append(workspace, keyStream(keyId), eventOf(keyStream(keyId), fact, step, data)),
    hasKeyFact: async (workspace, keyId, fact, step) => {
      const eventId = eventIdOf(keyStream(keyId), fact, step);
      const events = await store.readStream(workspace, keyStream(keyId), { backwards: true, limit: 100 });
      return events.some((event) => event.eventId === eventId);
    },
    hasKey: async (workspace, keyId) => (await store.streamVersion(workspace, keyStream(keyId))) > 0,
    appendWorkspace: (workspace, data) => {
      const streamId = workspaceStream(workspace);
      return append(workspace, streamId, eventOf(streamId, 'WorkspaceCreated', 1, data));
    },
    appendRecord: (workspace, fact, id, data) => {
      const streamId = workspaceStream(workspace);
      const event = eventOf(streamId, fact, 1, data);
      return append(workspace, streamId, { ...event, eventId: eventIdOf(streamId, id, 1) });
    },
    hasWorkspace: async (workspace) => (await store.streamVersion(workspace, workspaceStream(workspace))) > 0,
  };
};
