import type { JsonObject } from '@antiphon/kernel';

/** What every event says about where it came from; never a secret, never a payload. */
export interface EventMetadata {
  readonly correlationId: string;
  readonly causationId?: string;
  readonly traceparent?: string;
  /** The service that appended it. */
  readonly service: string;
  /** Epoch of the lease under which a driver appended it. */
  readonly epoch?: number;
  readonly [key: string]: string | number | undefined;
}

export interface NewEvent {
  /** UUID. The same id with the same content again is answered with the first result. */
  readonly eventId: string;
  readonly type: string;
  readonly schemaVersion: number;
  readonly data: JsonObject;
  readonly metadata: EventMetadata;
}

export interface StreamAppend {
  /** `<category>-<id>`; the category is what stands before the first dash. */
  readonly streamId: string;
  /** The version that the stream must have (0 = it must not exist); `any` for no check. */
  readonly expectedVersion: number | 'any';
  readonly events: readonly NewEvent[];
}

/** Refuses the append unless the lease has this epoch still; checked under the lock, in the same transaction. */
export interface Fence {
  readonly lease: string;
  readonly epoch: number;
}

/** Kept in the accepting transaction: the same key and digest again is answered with the first `answer`. */
export interface IdempotencyClaim {
  /** Caller and method, e.g. `ws:loopback/chat.send`; the workspace is added by the store. */
  readonly scope: string;
  readonly key: string;
  /** SHA-256 (hex) of the request's body. */
  readonly digest: string;
  readonly response: JsonObject;
}

/** All streams of one request are appended, or none. */
export interface AppendRequest {
  readonly workspace: string;
  readonly streams: readonly StreamAppend[];
  readonly fence?: Fence;
  readonly idempotency?: IdempotencyClaim;
}

export interface AppendResult {
  /** Version of each stream after the append, in the order of the request. */
  readonly versions: readonly number[];
  /** Positions of the first and the last event. */
  readonly firstPosition: number;
  readonly lastPosition: number;
  /** `appended`: written now. `duplicate`: the same event ids and content were there. `joined`: the idempotency key was. */
  readonly outcome: 'appended' | 'duplicate' | 'joined';
  /** With `joined`: the first request's answer. */
  readonly response?: JsonObject;
}

/** An event as it is read back. */
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
  /** ISO 8601, the database's clock. */
  readonly recordedAt: string;
  /** Hex SHA-256; see docs/adr on the hash chain. */
  readonly hash: string;
}

export interface ReadStreamOptions {
  /** First version wanted, from 1. */
  readonly fromVersion?: number;
  readonly limit?: number;
  /** Newest first. */
  readonly backwards?: boolean;
}

export interface ReadLogOptions {
  /** Exclusive. */
  readonly after: number;
  readonly limit: number;
  readonly categories?: readonly string[];
}

/**
 * The append-only log. Errors (AppError by code): `LOG.VERSION_CONFLICT` (data: streamId, expected, actual),
 * `LOG.EVENT_ID_CONFLICT`, `LOG.IDEMPOTENCY_CONFLICT`, `LOG.FENCED` (data: lease, epoch, actual),
 * `LOG.NOT_OWNER`, `LOG.INVALID`, `LOG.UNAVAILABLE` (transient); `LOG.ARCHIVED` (not found; data: streamId, version,
 * archiveId) for a read of a stream's events that have left to an archive.
 */
export interface EventStore {
  /** Appends that arrive together go as one batch (group commit); a conflict fails its own request alone. */
  append(request: AppendRequest): Promise<AppendResult>;
  readStream(workspace: string, streamId: string, options?: ReadStreamOptions): Promise<RecordedEvent[]>;
  /** In order of position. `LOG.ARCHIVED` when events behind `after` may have left (see `basePosition`). */
  readLog(options: ReadLogOptions): Promise<RecordedEvent[]>;
  /** Version of a stream, 0 if it does not exist. */
  streamVersion(workspace: string, streamId: string): Promise<number>;
  /** Behind this position the log is without holes; of what lies before it, events may have left to archives. */
  basePosition(): Promise<number>;
  /** Position of the newest event, 0 for an empty log. */
  headPosition(): Promise<number>;
}
