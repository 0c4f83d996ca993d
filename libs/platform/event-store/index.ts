export { checkArchiveFile } from './archive/archive-file.js';
export { archiveEvents } from './archive/archive-log.js';
export type { Archived, ArchiveOptions } from './archive/archive-log.js';
export { listArchives, restoreArchive } from './archive/restore-archive.js';
export type { KnownArchive } from './archive/restore-archive.js';
export { appendSql } from './append/append-batch.js';
export type { AppendOutcome } from './append/append-outcome.js';
export { canonicalJson, genesisHash, hashEvent, verifyChain } from './integrity/event-hash.js';
export type { ChainStart, ChainVerdict, HashedFields } from './integrity/event-hash.js';
export type {
  AppendRequest,
  AppendResult,
  EventMetadata,
  EventStore,
  Fence,
  IdempotencyClaim,
  NewEvent,
  ReadLogOptions,
  ReadStreamOptions,
  RecordedEvent,
  StreamAppend,
} from './event-store.port.js';
export type { Lease, LeaseAttempt, LeaseStore } from './lease.port.js';
export { createRootHasher, isSignedBy, signingKeyId, signContent } from './integrity/log-root.js';
export type { LogRoot, SignedLogRoot, StreamHead } from './integrity/log-root.js';
export { beginEpoch, readLogEnd } from './read/log-epoch.js';
export type { LogEnd } from './read/log-epoch.js';
export { createLogReader } from './read/log-reader.js';
export type { LogReader } from './read/log-reader.js';
export { createMemoryEventStore } from './memory-event-store.js';
export type { MemoryEventStore, MemoryEventStoreOptions } from './memory-event-store.js';
export { createMemoryLeaseStore } from './memory-lease-store.js';
export type { MemoryLeaseStore } from './memory-lease-store.js';
export { createPostgresEventStore } from './postgres-event-store.js';
export type { EventStorePg, PostgresEventStoreOptions } from './postgres-event-store.js';
export { createLeaseStore } from './postgres-lease-store.js';
export { APPEND_LIMITS } from './append/prepare-append.js';
export { listParked } from './projections/list-parked.js';
export type { ParkedStream } from './projections/list-parked.js';
export { replayParked } from './projections/projection-replay.js';
export type {
  ReplayFilter,
  ReplaySource,
  ReplayResult,
  StillParked,
} from './projections/projection-replay.js';
export { runProjection } from './projections/projection-runner.js';
export type { ProjectionOptions, RunningProjection } from './projections/projection-runner.js';
export type { HandleEvents, ProjectionSource } from './projections/projection-source.js';
export { readLogRootInTransaction, readLogRoot } from './integrity/read-log-root.js';
export { loadSigningKey } from './integrity/signing-key.js';
export { compareProjection, compareProjections } from './projections/rebuild/compare-projection.js';
export type { CompareOptions, ProjectionComparison } from './projections/rebuild/compare-projection.js';
export type { RowDifference } from './projections/rebuild/compare-rows.js';
export { listProjections } from './projections/rebuild/list-projections.js';
export type { ListedProjection } from './projections/rebuild/list-projections.js';
export type { ProjectionDefinition, ProjectionTable } from './projections/rebuild/projection-definition.js';
export { rebuildProjection } from './projections/rebuild/rebuild-projection.js';
export type { RebuiltProjection } from './projections/rebuild/rebuild-projection.js';
