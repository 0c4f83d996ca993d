import { isoTime, type Clock, type JsonObject } from '@antiphon/kernel';
import { systemClock } from '@antiphon/observability';
import { type OutcomeName, type RefusalDetail, refusalOf, resultOf } from './append/append-outcome.js';
import { canonicalJson, genesisHash, hashEvent } from './integrity/event-hash.js';
import type {
  AppendRequest,
  AppendResult,
  EventMetadata,
  EventStore,
  RecordedEvent,
} from './event-store.port.js';
import type { MemoryLeaseStore } from './memory-lease-store.js';
import { type PreparedAppend, type PreparedEvent, prepareAppend } from './append/prepare-append.js';

export interface MemoryEventStoreOptions {
  readonly clock?: Clock;
  /** Which categories this store's user may append to; every one by default. */
  readonly owns?: (category: string) => boolean;
  /** Where fences are checked; without it every fenced append is refused. */
  readonly leases?: MemoryLeaseStore;
  readonly onAppended?: () => void;
}

type Found = Omit<AppendResult, 'outcome'>;
type Verdict =
  | { readonly outcome: 'append' }
  | { readonly outcome: 'duplicate' | 'joined'; readonly found: Found }
  | {
      readonly outcome: Exclude<OutcomeName, 'appended' | 'duplicate' | 'joined'>;
      readonly detail: RefusalDetail;
    };

interface StoredClaim extends Found {
  readonly digest: string;
}

interface Log {
  readonly events: RecordedEvent[];
  readonly byId: Map<string, RecordedEvent>;
  readonly streams: Map<string, RecordedEvent[]>;
  readonly claims: Map<string, StoredClaim>;
}

const streamKey = (workspace: string, streamId: string): string => `${workspace} ${streamId}`;
const claimKey = ({ workspace, idempotency }: AppendRequest): string =>
  JSON.stringify([workspace, idempotency?.scope, idempotency?.key]);
const versionIn = (log: Log, workspace: string, streamId: string): number =>
  log.streams.get(streamKey(workspace, streamId))?.length ?? 0;

const sameContent = (
  stored: RecordedEvent,
  workspace: string,
  streamId: string,
  event: PreparedEvent,
): boolean =>
  stored.workspace === workspace &&
  stored.streamId === streamId &&
  stored.type === event.type &&
  stored.schemaVersion === event.schemaVersion &&
  canonicalJson(stored.data) === event.data;

const judgeIds = (log: Log, { request: { workspace }, streams }: PreparedAppend): Verdict | undefined => {
  const pairs = streams.flatMap(({ streamId, events }) =>
    events.map((event) => ({ event, streamId, stored: log.byId.get(event.eventId) })),
  );
  const known = pairs.filter(({ stored }) => stored !== undefined);
  if (known.length === 0) return undefined;
  const same = pairs.every(
    ({ event, streamId, stored }) => stored !== undefined && sameContent(stored, workspace, streamId, event),
  );
  if (!same) return { outcome: 'event_id_conflict', detail: { eventId: known[0]?.event.eventId } };
  const positions = pairs.map(({ stored }) => stored?.position ?? 0);
  const versions = streams.map(
    ({ events }) => log.byId.get(events.at(-1)?.eventId ?? '')?.streamVersion ?? 0,
  );
  const found = { versions, firstPosition: Math.min(...positions), lastPosition: Math.max(...positions) };
  return { outcome: 'duplicate', found };
};

const judgeClaim = (log: Log, { request }: PreparedAppend): Verdict | undefined => {
  const claim = request.idempotency ? log.claims.get(claimKey(request)) : undefined;
  if (claim === undefined) return undefined;
  return claim.digest === request.idempotency?.digest
    ? { outcome: 'joined', found: claim }
    : { outcome: 'idempotency_conflict', detail: {} };
};

const judgeFence = (request: AppendRequest, leases: MemoryLeaseStore | undefined): Verdict | undefined => {
  if (request.fence === undefined) return undefined;
  const held = leases?.inspect(request.workspace, request.fence.lease);
  return held?.owner !== null && held?.epoch === request.fence.epoch
    ? undefined
    : { outcome: 'fenced', detail: { actual: held?.epoch ?? 0 } };
};

const judgeVersions = (
  log: Log,
  { request: { workspace }, streams }: PreparedAppend,
): Verdict | undefined => {
  for (const { streamId, expectedVersion } of streams) {
    const actual = versionIn(log, workspace, streamId);
    if (expectedVersion !== null && expectedVersion !== actual)
      return { outcome: 'version_conflict', detail: { streamId, expected: expectedVersion, actual } };
  }
  return undefined;
};

const record = (log: Log, { request: { workspace }, streams }: PreparedAppend, recordedAt: string): void => {
  for (const { streamId, category, events } of streams) {
    const key = streamKey(workspace, streamId);
    const stream = log.streams.get(key) ?? [];
    log.streams.set(key, stream);
    for (const event of events) {
      const last = stream.at(-1);
      const previous = last ? Buffer.from(last.hash, 'hex') : genesisHash(workspace);
      const placed = { ...event, streamId, streamVersion: stream.length + 1 };
      const stored: RecordedEvent = {
        ...placed,
        position: log.events.length + 1,
        workspace,
        category,
        data: JSON.parse(event.data) as JsonObject,
        metadata: JSON.parse(event.metadata) as EventMetadata,
        recordedAt,
        hash: hashEvent(previous, placed).toString('hex'),
      };
      stream.push(stored);
      log.events.push(stored);
      log.byId.set(event.eventId, stored);
    }
  }
};

const write = (log: Log, prepared: PreparedAppend, recordedAt: string): AppendResult => {
  const { request, streams, answer } = prepared;
  const firstPosition = log.events.length + 1;
  record(log, prepared, recordedAt);
  const versions = streams.map(({ streamId }) => versionIn(log, request.workspace, streamId));
  const result = resultOf('appended', versions, firstPosition, log.events.length);
  if (request.idempotency) {
    const { digest } = request.idempotency;
    const first = { versions, firstPosition, lastPosition: log.events.length };
    log.claims.set(claimKey(request), {
      ...first,
      digest,
      response: JSON.parse(answer ?? 'null') as JsonObject,
    });
  }
  return result;
};

const copy = (events: readonly RecordedEvent[]): RecordedEvent[] => structuredClone([...events]);

const readerOf = (log: Log): Omit<EventStore, 'append'> => ({
  readStream: async (workspace, streamId, { fromVersion = 1, limit = Infinity, backwards = false } = {}) => {
    const events = (log.streams.get(streamKey(workspace, streamId)) ?? []).slice(fromVersion - 1);
    return copy((backwards ? events.reverse() : events).slice(0, limit));
  },
  readLog: async ({ after, limit, categories }) => {
    const wanted = log.events.slice(after).filter(({ category }) => categories?.includes(category) ?? true);
    return copy(wanted.slice(0, limit));
  },
  streamVersion: async (workspace, streamId) => versionIn(log, workspace, streamId),
  basePosition: async () => 0,
  headPosition: async () => log.events.length,
});

export interface MemoryEventStore extends EventStore {
  /** The same log, seen by a service that owns other categories. */
  forOwner(owns: (category: string) => boolean): EventStore;
}

/** The log in this process's memory, with the contract of the real one: for tests and demonstrations, never for facts. */
export const createMemoryEventStore = (options: MemoryEventStoreOptions = {}): MemoryEventStore => {
  const { clock = systemClock, leases, onAppended } = options;
  const log: Log = { events: [], byId: new Map(), streams: new Map(), claims: new Map() };

  const judge = (prepared: PreparedAppend, owns: (category: string) => boolean): Verdict => {
    const foreign = prepared.streams.find(({ category }) => !owns(category));
    if (foreign) return { outcome: 'not_owner', detail: { category: foreign.category } };
    return (
      judgeIds(log, prepared) ??
      judgeClaim(log, prepared) ??
      judgeFence(prepared.request, leases) ??
      judgeVersions(log, prepared) ?? { outcome: 'append' }
    );
  };

  const as = (owns: (category: string) => boolean): EventStore => ({
    append: async (request) => {
      const prepared = prepareAppend(request);
      const verdict = judge(prepared, owns);
      if ('detail' in verdict) throw refusalOf(verdict.outcome, request, verdict.detail);
      if ('found' in verdict) {
        const { versions, firstPosition, lastPosition, response } = verdict.found;
        return resultOf(verdict.outcome, versions, firstPosition, lastPosition, response);
      }
      const result = write(log, prepared, isoTime(clock));
      onAppended?.();
      return result;
    },
    ...readerOf(log),
  });

  return { ...as(options.owns ?? (() => true)), forOwner: as };
};
