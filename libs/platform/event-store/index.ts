export { checkArchiveFile } from './archive/archive-file.js';
export { archiveEvents } from './archive/archive-log.js';
export type { Archived, ArchiveOptions } from './archive/archive-log.js';
export { listArchives, restoreArchive } from './archive/restore-archive.js';
export type { KnownArchive } from './archive/restore-archive.js';
export { appendSql } from './append-batch.js';
export type { AppendOutcome } from './append-outcome.js';
export { canonicalJson, genesisHash, hashEvent, verifyChain } from './event-hash.js';
export type { ChainStart, ChainVerdict, HashedFields } from './event-hash.js';
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
export { createRootHasher, isSignedBy, keyIdOf, signContent } from './log-root.js';
export type { LogRoot, SignedLogRoot, StreamHead } from './log-root.js';
export { beginEpoch, readLogEnd } from './log-epoch.js';
export type { LogEnd } from './log-epoch.js';
export { createLogReader } from './log-reader.js';
export type { LogReader } from './log-reader.js';
export { createMemoryEventStore } from './memory-event-store.js';
export type { MemoryEventStore, MemoryEventStoreOptions } from './memory-event-store.js';
export { createMemoryLeaseStore } from './memory-lease-store.js';
export type { MemoryLeaseStore } from './memory-lease-store.js';
export { createPostgresEventStore } from './postgres-event-store.js';
export type { EventStorePg, PostgresEventStoreOptions } from './postgres-event-store.js';
export { createLeaseStore } from './postgres-lease-store.js';
export { APPEND_LIMITS } from './prepare-append.js';
export { listParked } from './list-parked.js';
export type { ParkedStream } from './list-parked.js';
export { replayParked } from './projection-replay.js';
export type { ReplayFilter, Replaying, ReplayResult, StillParked } from './projection-replay.js';
export { runProjection } from './projection-runner.js';
export type { ProjectionOptions, RunningProjection } from './projection-runner.js';
export type { HandleEvents, ProjectionSource } from './projection-source.js';
export { logRootWithin, readLogRoot } from './read-log-root.js';
export { loadSigningKey } from './signing-key.js';
export { createSignal } from './wake-signal.js';
export type { WakeSignal } from './wake-signal.js';
export { compareProjection, compareProjections } from './rebuild-projections/compare-projection.js';
export type { CompareOptions, ProjectionComparison } from './rebuild-projections/compare-projection.js';
export type { RowDifference } from './rebuild-projections/compare-rows.js';
export { listProjections } from './rebuild-projections/list-projections.js';
export type { ListedProjection } from './rebuild-projections/list-projections.js';
export type { ProjectionDefinition, ProjectionTable } from './rebuild-projections/projection-definition.js';
export { rebuildProjection } from './rebuild-projections/rebuild-projection.js';
export type { RebuiltProjection } from './rebuild-projections/rebuild-projection.js';
