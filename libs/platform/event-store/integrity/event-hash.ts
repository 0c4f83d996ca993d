import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { JsonObject } from '@antiphon/kernel';
import type { RecordedEvent } from '../event-store.port.js';

/**
 * Returns the RFC 8785 text of a JSON object: sorted keys, one spelling of each number and string.
 * Throws for lone surrogates and NaN.
 */
export const canonicalJson = (value: JsonObject): string => canonicalize(value) as string;

const sha256 = (...parts: readonly (string | Buffer)[]): Buffer => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};

/**
 * Returns the hash before the first event of every event stream of a workspace. It binds the chain
 * to its tenant.
 */
export const genesisHash = (workspace: string): Buffer => sha256(`antiphon-log-1\n${workspace}`);

/** Fields of an event that its hash covers; `data` and `metadata` as RFC 8785 text. */
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
 * Returns SHA-256 over the previous event's hash (32 bytes) and the fields as UTF-8 lines. No field
 * can hold a line feed, so no two events share an input. The SQL function `antiphon_append`
 * computes the same.
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

/** Head of an intact chain, or the first event that breaks it. */
export type ChainVerdict =
  | { readonly isIntact: true; readonly version: number; readonly hash: string }
  | { readonly isIntact: false; readonly event: RecordedEvent; readonly reason: string };

/** Point before the first event of a part of a chain. */
export interface ChainStart {
  readonly version: number;
  /** Hex. */
  readonly hash: string;
}

const findBreak = (
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
 * Recomputes the hash chain of one event stream, oldest event first. Names the first event that is
 * changed, out of order or not linked to its predecessor. Without `from`, the events must begin at
 * version 1.
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
    const reason = findBreak(event, version, previous, first as RecordedEvent);
    if (reason !== undefined) return { isIntact: false, event, reason };
    version = event.streamVersion;
    previous = Buffer.from(event.hash, 'hex');
  }
  return { isIntact: true, version, hash: previous.toString('hex') };
};
