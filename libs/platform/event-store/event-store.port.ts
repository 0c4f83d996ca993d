import type { JsonObject } from '@antiphon/kernel';

/** Origin of an event; never holds a secret or a payload. */
export interface EventMetadata {
  readonly correlationId: string;
  readonly causationId?: string;
  readonly traceparent?: string;
  /** Service that appended the event. */
  readonly service: string;
  /** Epoch of the lease under which a driver appended the event. */
  readonly epoch?: number;
  readonly [key: string]: string | number | undefined;
}

export interface NewEvent {
  /** UUID. An append that repeats an id with the same content returns the first result. */
  readonly eventId: string;
  readonly type: string;
  readonly schemaVersion: number;
  readonly data: JsonObject;
  readonly metadata: EventMetadata;
}

export interface StreamAppend {
  /** `<category>-<id>`; the category is the text before the first dash. */
  readonly streamId: string;
  /** Version that the stream must have (0 = it must not exist); `any` disables the check. */
  readonly expectedVersion: number | 'any';
  readonly events: readonly NewEvent[];
}

/**
 * Fencing token: rejects the append unless the lease still has this epoch. The check runs under the
 * lease's row lock, in the transaction of the append.
 */
export interface Fence {
  readonly lease: string;
  readonly epoch: number;
  /** Workspace of the lease. Default: that of the append. */
  readonly workspace?: string;
  /**
   * Acquires the lease in the transaction of the append, for the first epoch of a new name: no
   * other process can hold it.
   */
  readonly acquire?: { readonly owner: string; readonly ttlMs: number };
}

/**
 * Requires that a stream has a version, without an append to it: what was decided from a cached
 * read of the stream is still true. 0 means that it does not exist.
 */
export interface StreamGuard {
  readonly streamId: string;
  readonly version: number;
}

/**
 * Idempotency key of a request, stored in the transaction that accepts it. A later request with the
 * same key and digest gets the stored `response` and appends nothing.
 */
export interface IdempotencyClaim {
  /**
   * Caller and method, such as `key/k1/turn.submit`. Only the service that handles the method may
   * claim under it. The store adds the workspace.
   */
  readonly scope: string;
  readonly key: string;
  /** SHA-256 (hex) of the request's body. */
  readonly digest: string;
  readonly response: JsonObject;
}

/** Bytes that events cite by their digest. */
export interface BlobAppend {
  /** SHA-256 of the body, hex. */
  readonly digest: string;
  readonly body: Uint8Array;
}

/** Appends to several streams: all are written, or none. */
export interface AppendRequest {
  readonly workspace: string;
  readonly streams: readonly StreamAppend[];
  /** Rejected with `LOG.VERSION_CONFLICT` when one of the streams has another version. */
  readonly guards?: readonly StreamGuard[];
  /**
   * Bytes of files, stored in the transaction of the append. Those of a rejected append may stay,
   * as any bytes that no fact cites. The store in memory keeps none.
   */
  readonly blobs?: readonly BlobAppend[];
  readonly fence?: Fence;
  readonly idempotency?: IdempotencyClaim;
  /**
   * Input of `antiphon_append_extended`, which adds events of another service to the commit. Work
   * that it cannot do is left out, without an error.
   */
  readonly extension?: JsonObject;
}

export interface AppendResult {
  /** Version of each stream after the append, in the order of the request. */
  readonly versions: readonly number[];
  /** Positions of the first and the last event. */
  readonly firstPosition: number;
  readonly lastPosition: number;
  /**
   * With `appended` the events were written now. With `duplicate` the same event ids and content
   * exist. With `joined` the idempotency key exists.
   */
  readonly outcome: 'appended' | 'duplicate' | 'joined';
  /** Response of the first request; only with `joined`. */
  readonly response?: JsonObject;
  /** Result of the extension; absent if it was left out. */
  readonly extension?: JsonObject;
}

/** A stored event. */
export interface RecordedEvent {
  readonly position: number;
  readonly workspace: string;
  readonly category: string;
  readonly streamId: string;
  readonly streamVersion: number;
  readonly eventId: string;
  readonly type: string;
  readonly schemaVersion: number;
  readonly data: JsonObject;
  readonly metadata: EventMetadata;
  /** ISO 8601, from the database's clock. */
  readonly recordedAt: string;
  /** Hex SHA-256 of the hash chain (integrity/event-hash.ts). */
  readonly hash: string;
}

export interface ReadStreamOptions {
  /** First version to return, from 1. */
  readonly fromVersion?: number;
  readonly limit?: number;
  /** Returns the newest event first. */
  readonly backwards?: boolean;
}

export interface ReadLogOptions {
  /** Exclusive. */
  readonly after: number;
  readonly limit: number;
  readonly categories?: readonly string[];
}

/** Bytes of event data in a page, unless its reader names another bound. */
export const PAGE_BYTES = 8 * 1024 * 1024;

/** Bounds of a page. It has at least one event, and ends with the event that reaches `maxBytes`. */
export interface PageBounds {
  readonly limit: number;
  /** Bytes of event data; default `PAGE_BYTES`. An event has at most 1 MiB. */
  readonly maxBytes?: number;
}

export interface StreamPageOptions extends PageBounds {
  /** First version to return, from 1. */
  readonly fromVersion?: number;
  /** Exclusive. */
  readonly beforeVersion?: number;
  /** Returns the newest event first. */
  readonly backwards?: boolean;
}

export interface LogPageOptions extends PageBounds {
  /** Exclusive. */
  readonly after: number;
  readonly categories?: readonly string[];
}

/** Some events in order. Memory is bounded by bytes, not by a number of events. */
export interface EventPage {
  readonly events: RecordedEvent[];
  /** True if the page ended at one of its bounds, so that more events may follow. */
  readonly hasMore: boolean;
}

/**
 * The append-only log, with optimistic concurrency. Every method rejects with an AppError:
 * - `LOG.VERSION_CONFLICT`: a stream has another version (data has streamId, expected, actual).
 * - `LOG.EVENT_ID_CONFLICT`: an event id exists with other content.
 * - `LOG.IDEMPOTENCY_CONFLICT`: an idempotency key exists with another digest.
 * - `LOG.FENCED`: the lease has another epoch (data has lease, epoch, actual).
 * - `LOG.NOT_OWNER`: another service owns the category, or handles the method of the claim's scope.
 * - `LOG.INVALID`: the request is malformed or too large.
 * - `LOG.UNAVAILABLE` (transient): the log cannot be reached or is overloaded.
 * - `LOG.ARCHIVED` (not found): the events are archived (data has streamId, version, archiveId).
 */
export interface EventStore {
  /**
   * Joins concurrent appends in one batch (group commit); a conflict fails only its own request.
   */
  append(request: AppendRequest): Promise<AppendResult>;
  /** Reads a stream that is known to be small, or a few of its events. */
  readStream(workspace: string, streamId: string, options?: ReadStreamOptions): Promise<RecordedEvent[]>;
  /** Reads a page of a stream of any size. */
  readStreamPage(workspace: string, streamId: string, options: StreamPageOptions): Promise<EventPage>;
  /**
   * Reads events in order of position. Rejects with `LOG.ARCHIVED` when events after `after` may be
   * archived (see `basePosition`).
   */
  readLog(options: ReadLogOptions): Promise<RecordedEvent[]>;
  /** Reads a page of the log as `readLog` does. */
  readLogPage(options: LogPageOptions): Promise<EventPage>;
  /** Returns the version of a stream, 0 if it does not exist. */
  streamVersion(workspace: string, streamId: string): Promise<number>;
  /** Returns the position after which the log is complete; events up to it may be archived. */
  basePosition(): Promise<number>;
  /** Returns the position of the newest event, 0 for an empty log. */
  headPosition(): Promise<number>;
}

/** A lock with one owner at a time. Its epoch grows with each change of owner. */
export interface Lease {
  readonly workspace: string;
  readonly name: string;
  readonly owner: string;
  readonly epoch: number;
}

export type LeaseAttempt =
  | { readonly acquired: true; readonly lease: Lease }
  /** `owner` and `epoch` are those of the present holder. */
  | { readonly acquired: false; readonly owner: string; readonly epoch: number };

/**
 * Leases: rows with an owner, an epoch and an expiry by the database's clock. They are operational
 * state, not facts. A holder's appends carry the epoch as a fencing token (`Fence`).
 */
export interface LeaseStore {
  /** Acquires a free, expired or own lease for `ttlMs`. An own unexpired lease keeps its epoch. */
  acquire(workspace: string, name: string, owner: string, ttlMs: number): Promise<LeaseAttempt>;
  /**
   * Extends the leases that are still held at the same epoch. Returns the names of the lost ones.
   */
  renew(leases: readonly Lease[], ttlMs: number): Promise<readonly string[]>;
  release(lease: Lease): Promise<void>;
  /**
   * Releases every lease of owners with this prefix. The caller knows that these owners are dead.
   * Returns the number of released leases.
   */
  releaseOwner(ownerPrefix: string): Promise<number>;
}
