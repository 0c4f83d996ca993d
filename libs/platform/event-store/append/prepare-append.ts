import { invalid, type JsonObject, nestsDeeperThan } from '@antiphon/kernel';
import type { AppendRequest, NewEvent, StreamAppend } from '../event-store.port.js';
import { canonicalJson } from '../integrity/event-hash.js';

/** Limits of one request. Larger content belongs into a file that the event names. */
export const APPEND_LIMITS = {
  eventBytes: 1024 * 1024,
  metadataBytes: 8 * 1024,
  requestBytes: 8 * 1024 * 1024,
  requestEvents: 1_000,
  requestStreams: 64,
  depth: 128,
} as const;

export interface PreparedEvent {
  readonly eventId: string;
  readonly type: string;
  readonly schemaVersion: number;
  /** RFC 8785 text. */
  readonly data: string;
  /** RFC 8785 text. */
  readonly metadata: string;
}

export interface PreparedStream {
  readonly streamId: string;
  readonly category: string;
  /** Null disables the version check. */
  readonly expectedVersion: number | null;
  readonly events: readonly PreparedEvent[];
}

/** A validated request, with its content as the text that is hashed and stored. */
export interface PreparedAppend {
  readonly request: AppendRequest;
  readonly streams: readonly PreparedStream[];
  /** RFC 8785 text of the idempotency claim's response. */
  readonly response: string | null;
  readonly bytes: number;
  readonly events: number;
  /** Streams, event ids and idempotency key; no other request of a batch may have one of them. */
  readonly exclusiveKeys: readonly string[];
  /** Streams of its guards; no other request of a batch may append to one of them. */
  readonly sharedKeys: readonly string[];
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const STREAM_ID = /^([a-z][a-z0-9_]*)-[A-Za-z0-9._~:%/-]{1,240}$/;
const EVENT_TYPE = /^[A-Za-z][A-Za-z0-9_.]{0,99}$/;
const WORKSPACE = /^[a-z0-9][a-z0-9-]{0,62}$/;
/** Printable ASCII, so that every process sorts the locks of leases in the same order. */
const LEASE_NAME = /^[\x21-\x7e]{1,300}$/;
/** Matches U+0000 escaped in JSON text: a backslash that is not itself escaped, then u0000. */
const NUL_ESCAPE = /(?<!\\)(?:\\\\)*\\u0000/;

const refuse = (message: string, data: Record<string, unknown> = {}): never => {
  throw invalid('LOG.INVALID', message, { data });
};

const toCanonicalText = (value: JsonObject, label: string, maxBytes: number): string => {
  let text: string;
  try {
    text = canonicalJson(value);
  } catch (cause) {
    throw invalid('LOG.INVALID', `${label} is not JSON that can be stored`, { cause });
  }
  if (typeof text !== 'string' || !text.startsWith('{')) refuse(`${label} must be an object`);
  if (text.length > maxBytes || Buffer.byteLength(text) > maxBytes)
    refuse(`${label} is over ${maxBytes} bytes`);
  if (text.includes('\\u0000') && NUL_ESCAPE.test(text))
    refuse(`${label} holds U+0000, which cannot be stored`);
  if (nestsDeeperThan(text, APPEND_LIMITS.depth))
    refuse(`${label} is over ${APPEND_LIMITS.depth} levels deep`);
  return text;
};

const prepareEvent = (event: NewEvent): PreparedEvent => {
  const { eventId, type, schemaVersion, metadata } = event;
  if (!UUID.test(eventId)) refuse('an event id must be a UUID in lower case', { eventId });
  if (!EVENT_TYPE.test(type)) refuse('an event type must be a name', { type });
  if (!Number.isInteger(schemaVersion) || schemaVersion < 1 || schemaVersion > 32_767)
    refuse('a schema version must be a positive integer', { type });
  return {
    eventId,
    type,
    schemaVersion,
    data: toCanonicalText(event.data, `data of ${type}`, APPEND_LIMITS.eventBytes),
    metadata: toCanonicalText(metadata as JsonObject, `metadata of ${type}`, APPEND_LIMITS.metadataBytes),
  };
};

const prepareStream = ({ streamId, expectedVersion, events }: StreamAppend): PreparedStream => {
  const category = STREAM_ID.exec(streamId)?.[1] ?? refuse('a stream id is <category>-<id>', { streamId });
  if (events.length === 0) refuse('an append to a stream has at least one event', { streamId });
  if (expectedVersion !== 'any' && !(Number.isSafeInteger(expectedVersion) && expectedVersion >= 0))
    refuse('an expected version is a whole number or any', { streamId });
  return {
    streamId,
    category,
    expectedVersion: expectedVersion === 'any' ? null : expectedVersion,
    events: events.map(prepareEvent),
  };
};

const streamKey = (workspace: string, streamId: string): string => `s ${workspace} ${streamId}`;

const listExclusiveKeys = ({ workspace, streams, idempotency }: AppendRequest): string[] => [
  ...streams.map(({ streamId }) => streamKey(workspace, streamId)),
  ...streams.flatMap(({ events }) => events.map(({ eventId }) => `e ${eventId}`)),
  ...(idempotency ? [`k ${workspace} ${JSON.stringify([idempotency.scope, idempotency.key])}`] : []),
];

const checkSizes = (request: AppendRequest, events: number): void => {
  if (!WORKSPACE.test(request.workspace)) refuse('a workspace id is a short lower-case name');
  if (request.streams.length === 0) refuse('a request has at least one stream');
  const streams = request.streams.length + (request.guards?.length ?? 0);
  if (streams > APPEND_LIMITS.requestStreams || events > APPEND_LIMITS.requestEvents)
    refuse(
      `a request has at most ${APPEND_LIMITS.requestStreams} streams and ${APPEND_LIMITS.requestEvents} events`,
    );
};

const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed();

const checkGuards = ({ fence, idempotency, guards = [] }: AppendRequest): void => {
  for (const { streamId, version } of guards)
    if (!STREAM_ID.test(streamId) || !Number.isSafeInteger(version) || version < 0)
      refuse('a guard names a stream and its version', { streamId });
  if (fence && !(LEASE_NAME.test(fence.lease) && Number.isSafeInteger(fence.epoch)))
    refuse('a fence names a lease and its epoch');
  if (fence?.acquire && !(isStorable(fence.acquire.owner) && fence.acquire.ttlMs > 0))
    refuse('a lease is acquired by an owner for some time');
  if (idempotency === undefined) return;
  const { scope, key, digest } = idempotency;
  if (![scope, key, digest].every((text) => text.length > 0 && text.length <= 500 && isStorable(text)))
    refuse('an idempotency claim has a scope, a key and a digest of at most 500 characters');
};

/** SHA-256, hex. */
const DIGEST = /^[0-9a-f]{64}$/;

const checkBlobs = ({ blobs = [] }: AppendRequest): number => {
  if (!blobs.every(({ digest }) => DIGEST.test(digest))) refuse('bytes are named by their SHA-256');
  return blobs.reduce((sum, { body }) => sum + body.byteLength, 0);
};

const estimateBytes = ({ data, metadata, type }: PreparedEvent): number =>
  data.length + metadata.length + type.length + 100;

/** Validates a request and renders its content once. Throws `LOG.INVALID`. */
export const prepareAppend = (request: AppendRequest): PreparedAppend => {
  const events = request.streams.reduce((sum, stream) => sum + stream.events.length, 0);
  checkSizes(request, events);
  const exclusiveKeys = listExclusiveKeys(request);
  const sharedKeys = (request.guards ?? []).map(({ streamId }) => streamKey(request.workspace, streamId));
  if (new Set([...exclusiveKeys, ...sharedKeys]).size !== exclusiveKeys.length + sharedKeys.length)
    refuse('a request names each stream and each event id once');
  checkGuards(request);
  const { idempotency } = request;
  const streams = request.streams.map(prepareStream);
  const response = idempotency
    ? toCanonicalText(idempotency.response, 'the response', APPEND_LIMITS.eventBytes)
    : null;
  const bytes = streams
    .flatMap((stream) => stream.events)
    .reduce((sum, event) => sum + estimateBytes(event), (response?.length ?? 0) + checkBlobs(request));
  if (bytes > APPEND_LIMITS.requestBytes) refuse(`a request has at most ${APPEND_LIMITS.requestBytes} bytes`);
  return { request, streams, response, bytes, events, exclusiveKeys, sharedKeys };
};
