import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { JsonObject } from '@antiphon/kernel';
import type { RecordedEvent } from '../event-store.port.js';

/** RFC 8785 text of a JSON object: sorted keys, one spelling of every number and string. Throws for lone surrogates and NaN. */
export const canonicalJson = (value: JsonObject): string => canonicalize(value) as string;

const sha256 = (...parts: readonly (string | Buffer)[]): Buffer => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};

/** What stands before the first event of each event stream of a workspace; it binds the chain to its tenant. */
export const genesisHash = (workspace: string): Buffer => sha256(`antiphon-log-1\n${workspace}`);

/** The part of an event that its hash covers; `data` and `metadata` as RFC 8785 text. */
export interface HashedFields {
  readonly streamId: string;
  readonly streamVersion: number;
  readonly eventId: string;
  readonly type: string;
  readonly schemaVersion: number;
  readonly data: string;
  readonly metadata: string;
}

/**
 * SHA-256 over the previous event's hash (32 bytes) and the fields as UTF-8 lines. No field before `data` can
 * hold a line feed, and RFC 8785 text has none, so no two events share an input. `antiphon_append` does the same in SQL.
 */
export const hashEvent = (previous: Buffer, event: HashedFields): Buffer =>
  sha256(
    previous,
    [
      event.streamId,
      event.streamVersion,
      event.eventId,
      event.type,
      event.schemaVersion,
      event.data,
      event.metadata,
    ].join('\n'),
  );

/** Where a chain is whole up to, or the first event that breaks it. */
export type ChainVerdict =
  | { readonly isIntact: true; readonly version: number; readonly hash: string }
  | { readonly isIntact: false; readonly event: RecordedEvent; readonly reason: string };

/** The point before the first event given; without it the events must begin at version 1. */
export interface ChainStart {
  readonly version: number;
  /** Hex. */
  readonly hash: string;
}

const breakOf = (
  event: RecordedEvent,
  version: number,
  previous: Buffer,
  first: RecordedEvent,
): string | undefined => {
  if (event.workspace !== first.workspace || event.streamId !== first.streamId)
    return 'belongs to another event stream';
  if (event.streamVersion !== version + 1) return `version ${event.streamVersion} follows ${version}`;
  if (event.category !== event.streamId.split('-', 1)[0])
    return `category ${event.category} is not the stream's`;
  const fields = {
    ...event,
    data: canonicalJson(event.data),
    metadata: canonicalJson(event.metadata as JsonObject),
  };
  if (hashEvent(previous, fields).toString('hex') !== event.hash) return 'its content does not have its hash';
  return undefined;
};

/**
 * Recomputes the hash chain of one event stream from what was read back (oldest first) and names the first
 * event that is out of order, changed or not its predecessor's successor.
 */
export const verifyChain = (events: readonly RecordedEvent[], from?: ChainStart): ChainVerdict => {
  const first = events[0];
  let version = from?.version ?? 0;
  let previous = from
    ? Buffer.from(from.hash, 'hex')
    : first
      ? genesisHash(first.workspace)
      : Buffer.alloc(0);
  for (const event of events) {
    const reason = breakOf(event, version, previous, first as RecordedEvent);
    if (reason !== undefined) return { isIntact: false, event, reason };
    version = event.streamVersion;
    previous = Buffer.from(event.hash, 'hex');
  }
  return { isIntact: true, version, hash: previous.toString('hex') };
};
