export { AggregateStore } from './aggregate/aggregate-store.js';
export type { AggregateOptions, Committed, Decide, Decision, Folded } from './aggregate/aggregate-store.js';
export type { AggregateSnapshots, CacheOptions, StateAt } from './aggregate/aggregate-cache.js';
export type { AppendDecision } from './aggregate/append-decision.js';
export { createFactLog } from './aggregate/aggregate-store.js';
export type { FactLog } from './aggregate/aggregate-store.js';
export { claimOf, digestOf } from './aggregate/idempotency-claim.js';
export { isVersionConflict, retryConflicts } from './aggregate/retry-conflicts.js';
export { appendSql } from './append/append-batch.js';
export type { AppendOutcome } from './append/append-outcome.js';
export { APPEND_LIMITS } from './append/prepare-append.js';
export { checkArchiveFile, readArchiveFile } from './archive/archive-file.js';
export { archiveEvents } from './archive/archive-events.js';
export {
  checkArchiveName,
  listArchives,
  proposeArchive,
  restoreArchive,
  withdrawArchive,
} from './archive/archive-log.js';
export type { Archived, ArchiveOptions, KnownArchive, ProposedArchive } from './archive/archive-log.js';
export { listArchiveRequests } from './archive/archive-requests.js';
export type { ArchiveRequest } from './archive/archive-requests.js';
export { settleArchiveRequest, settleArchiveRequests } from './archive/execute-archive.js';
export type { ArchiveOutcome } from './archive/execute-archive.js';
export type {
  AppendRequest,
  AppendResult,
  EventMetadata,
  EventPage,
  EventStore,
  Fence,
  BlobAppend,
  IdempotencyClaim,
  Lease,
  LeaseAttempt,
  LeaseStore,
  LogPageOptions,
  NewEvent,
  PageBounds,
  ReadLogOptions,
  ReadStreamOptions,
  RecordedEvent,
  StreamAppend,
  StreamGuard,
  StreamPageOptions,
} from './event-store.port.js';
export { PAGE_BYTES } from './event-store.port.js';
export { EVENT_BYTES, isPageFull, pageSql } from './read/event-row.js';
export type { PagedRow } from './read/event-row.js';
export { renderProof, verifyProof } from './integrity/event-proof.js';
export type { EventProof } from './integrity/event-proof.js';
export { isSignedReport, signReport } from './integrity/signed-report.js';
export type { SignedReportProof } from './integrity/signed-report.js';
export { canonicalJson, genesisHash, hashEvent, verifyChain } from './integrity/event-hash.js';
export type { ChainStart, ChainVerdict, HashedFields } from './integrity/event-hash.js';
export { createRootHasher, readLogRoot, readLogRootInTransaction } from './integrity/log-root.js';
export type { LogRoot, SignedLogRoot, StreamHead } from './integrity/log-root.js';
export { findPeak, hashPeaks, LogTree, PathBuilder } from './integrity/log-tree.js';
export type { LeafFields, SavedTree } from './integrity/log-tree.js';
export { adoptRoots, currentOperator } from './integrity/adopt-roots.js';
export type { AdoptRootsOptions } from './integrity/adopt-roots.js';
export { findEarlyEvent, findFirstUse, findRootsBegin } from './integrity/roots-begin.js';
export type { EarlyEvent, RootsBegin } from './integrity/roots-begin.js';
export { growTree, readLeaves, readLogState } from './integrity/read-leaves.js';
export type { CoverageBreak, LogState } from './integrity/read-leaves.js';
export {
  appendRoots,
  deleteForeignRoots,
  hasRootTable,
  readNewestRoots,
  readRootFile,
  readStoredRoots,
  storeRoot,
} from './integrity/root-store.js';
export {
  findNewestRoot,
  followEpochs,
  hashRecord,
  isTreeRoot,
  parseRootLines,
  sortBySignature,
  verifyRecordChain,
} from './integrity/signed-root.js';
export type { ParsedRoots, SignedRoot, SignedTreeRoot, TreeRoot } from './integrity/signed-root.js';
export {
  decodeKeyText,
  isSignedBy,
  isSignedByAny,
  loadSigningKeys,
  parseSigningKeys,
  readPublicKeys,
  readSigningKeys,
  signContent,
  signingKeyId,
} from './integrity/signing-key.js';
export type { SigningKeys } from './integrity/signing-key.js';
export { createPostgresEventStore } from './postgres-event-store.js';
export type { EventStorePg, PostgresEventStoreOptions } from './postgres-event-store.js';
export { readBackwards } from './read/read-backwards.js';
export { createLeaseStore } from './postgres-lease-store.js';
export type {
  HandleEvents,
  ProjectionDefinition,
  ProjectionTable,
} from './projections/projection-definition.js';
export { PastReads } from './projections/past-reads.js';
export type { AsOf, PastReadsOptions } from './projections/past-reads.js';
export { SnapshotMaker } from './projections/snapshot-maker.js';
export type { SnapshotMakerOptions } from './projections/snapshot-maker.js';
export { listParked } from './projections/projection-parking.js';
export type { ParkedStream } from './projections/projection-parking.js';
export { listProjections } from './projections/projection-progress.js';
export type { ListedProjection } from './projections/projection-progress.js';
export { replayParked, replayParkedStreams } from './projections/projection-retries.js';
export type {
  ReplayFilter,
  ReplayResult,
  ReplaySource,
  StillParked,
} from './projections/projection-retries.js';
export { reachPosition, runProjection } from './projections/projection-runner.js';
export { createLogMarks, createSharedLogPages } from './projections/shared-tail.js';
export type { LogMarks, SharedLogPages } from './projections/shared-tail.js';
export type { ProjectionOptions, RunningProjection } from './projections/projection-runner.js';
export { compareProjection, compareProjections } from './projections/rebuild/compare-projection.js';
export type { CompareOptions, ProjectionComparison } from './projections/rebuild/compare-projection.js';
export type { RowDifference } from './projections/rebuild/compare-rows.js';
export { rebuildProjection } from './projections/rebuild/rebuild-projection.js';
export type { RebuiltProjection } from './projections/rebuild/rebuild-projection.js';
export { beginEpoch, readLogEnd } from './read/log-epoch.js';
export type { LogEnd } from './read/log-epoch.js';
export { positionOfCursor, requireCursor, requirePosition } from './read/require-position.js';
export { createLogReader } from './read/log-reader.js';
export type { LogReader } from './read/log-reader.js';
export { createNamedQuery } from './projections/named-query.js';
