import { type Clock, isoTime, type JsonObject } from '@antiphon/kernel';
import { systemClock } from '@antiphon/observability';
import {
  createAppendResult,
  createRejection,
  type RejectedOutcome,
  type RejectionDetail,
} from '../append/append-outcome.js';
import { type PreparedAppend, prepareAppend, type PreparedEvent } from '../append/prepare-append.js';
import {
  type AppendRequest,
  type AppendResult,
  type EventMetadata,
  type EventPage,
  type EventStore,
  PAGE_BYTES,
  type PageBounds,
  type RecordedEvent,
} from '../event-store.port.js';
import { canonicalJson, genesisHash, hashEvent } from '../integrity/event-hash.js';
import type { MemoryLeaseStore } from './memory-lease-store.js';

export { createMemoryLeaseStore } from './memory-lease-store.js';
export type { MemoryLeaseStore } from './memory-lease-store.js';

export interface MemoryEventStoreOptions {
  readonly clock?: Clock;
  /** Selects the categories to which this store's user may append; all by default. */
  readonly owns?: (category: string) => boolean;
  /** Checks fences; without it the store rejects every fenced append. */
  readonly leases?: MemoryLeaseStore;
  readonly onAppended?: () => void;
}

type StoredResult = Omit<AppendResult, 'outcome'>;
/** Result of one check; undefined means that the next check decides. */
type Verdict =
  | { readonly outcome: 'duplicate' | 'joined'; readonly stored: StoredResult }
  | { readonly outcome: RejectedOutcome; readonly detail: RejectionDetail };

interface StoredClaim extends StoredResult {
  readonly digest: string;
}

const streamKey = (workspace: string, streamId: string): string => `${workspace} ${streamId}`;
const claimKey = ({ workspace, idempotency }: AppendRequest): string =>
  JSON.stringify([workspace, idempotency?.scope, idempotency?.key]);

const hasSameContent = (
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

const copy = (events: readonly RecordedEvent[]): RecordedEvent[] => structuredClone([...events]);

/** Returns the category whose owner handles a method: a scope is `<caller>/<method>`. */
const categoryOfScope = (scope: string): string => {
  const noun = scope.slice(scope.lastIndexOf('/') + 1).split('.')[0] ?? '';
  return { turn: 'session', credential: 'key' }[noun] ?? noun;
};

const toPage = (
  events: readonly RecordedEvent[],
  { limit, maxBytes = PAGE_BYTES }: PageBounds,
): EventPage => {
  const page: RecordedEvent[] = [];
  let bytes = 0;
  for (const event of events) {
    if (page.length === limit || bytes >= maxBytes) break;
    page.push(event);
    bytes += Buffer.byteLength(JSON.stringify(event.data));
  }
  return { events: copy(page), hasMore: page.length === limit || bytes >= maxBytes };
};

/** Events and claims of an in-memory log, with the checks that `antiphon_append` makes in SQL. */
class MemoryLog implements Omit<EventStore, 'append'> {
  private readonly events: RecordedEvent[] = [];
  private readonly byId = new Map<string, RecordedEvent>();
  private readonly streams = new Map<string, RecordedEvent[]>();
  private readonly claims = new Map<string, StoredClaim>();

  constructor(private readonly leases: MemoryLeaseStore | undefined) {}

  check(prepared: PreparedAppend, owns: (category: string) => boolean): Verdict | undefined {
    const guarded = (prepared.request.guards ?? []).map(({ streamId }) => streamId.split('-')[0] ?? '');
    const categories = [...prepared.streams.map(({ category }) => category), ...guarded];
    const foreign = categories.find((category) => !owns(category));
    if (foreign !== undefined) return { outcome: 'not_owner', detail: { category: foreign } };
    const scope = prepared.request.idempotency?.scope;
    if (scope !== undefined && !owns(categoryOfScope(scope)))
      return { outcome: 'not_owner', detail: { scope } };
    return (
      this.checkEventIds(prepared) ??
      this.checkClaim(prepared.request) ??
      this.checkFence(prepared.request) ??
      this.checkVersions(prepared)
    );
  }

  write(prepared: PreparedAppend, recordedAt: string): AppendResult {
    const { request, streams, response } = prepared;
    const firstPosition = this.events.length + 1;
    this.record(prepared, recordedAt);
    const lastPosition = this.events.length;
    const versions = streams.map(({ streamId }) => this.versionOf(request.workspace, streamId));
    if (request.idempotency) {
      const stored = { versions, firstPosition, lastPosition, response: JSON.parse(response ?? 'null') };
      this.claims.set(claimKey(request), { ...stored, digest: request.idempotency.digest });
    }
    return createAppendResult('appended', versions, firstPosition, lastPosition);
  }

  readonly readStream: EventStore['readStream'] = async (
    workspace,
    streamId,
    { fromVersion = 1, limit = Infinity, backwards = false } = {},
  ) => {
    const events = (this.streams.get(streamKey(workspace, streamId)) ?? []).slice(fromVersion - 1);
    return copy((backwards ? events.reverse() : events).slice(0, limit));
  };

  readonly readLog: EventStore['readLog'] = async ({ after, limit, categories }) => {
    const isWanted = ({ category }: RecordedEvent) => categories?.includes(category) ?? true;
    return copy(this.events.slice(after).filter(isWanted).slice(0, limit));
  };

  readonly readStreamPage: EventStore['readStreamPage'] = async (workspace, streamId, options) => {
    const { fromVersion = 1, beforeVersion = Infinity, backwards = false } = options;
    const stream = this.streams.get(streamKey(workspace, streamId)) ?? [];
    const events = stream.slice(fromVersion - 1, beforeVersion - 1);
    return toPage(backwards ? events.reverse() : events, options);
  };

  readonly readLogPage: EventStore['readLogPage'] = async (options) => {
    const isWanted = ({ category }: RecordedEvent) => options.categories?.includes(category) ?? true;
    return toPage(this.events.slice(options.after).filter(isWanted), options);
  };

  readonly streamVersion: EventStore['streamVersion'] = async (workspace, streamId) =>
    this.versionOf(workspace, streamId);
  readonly basePosition = async (): Promise<number> => 0;
  readonly headPosition = async (): Promise<number> => this.events.length;

  private versionOf(workspace: string, streamId: string): number {
    return this.streams.get(streamKey(workspace, streamId))?.length ?? 0;
  }

  private checkEventIds({ request: { workspace }, streams }: PreparedAppend): Verdict | undefined {
    const pairs = streams.flatMap(({ streamId, events }) =>
      events.map((event) => ({ event, streamId, stored: this.byId.get(event.eventId) })),
    );
    const known = pairs.find(({ stored }) => stored !== undefined);
    if (known === undefined) return undefined;
    const isSame = pairs.every(
      ({ event, streamId, stored }) =>
        stored !== undefined && hasSameContent(stored, workspace, streamId, event),
    );
    if (!isSame) return { outcome: 'event_id_conflict', detail: { eventId: known.event.eventId } };
    const positions = pairs.map(({ stored }) => stored?.position ?? 0);
    const versions = streams.map(
      ({ events }) => this.byId.get(events.at(-1)?.eventId ?? '')?.streamVersion ?? 0,
    );
    const [firstPosition, lastPosition] = [Math.min(...positions), Math.max(...positions)];
    return { outcome: 'duplicate', stored: { versions, firstPosition, lastPosition } };
  }

  private checkClaim(request: AppendRequest): Verdict | undefined {
    const claim = request.idempotency ? this.claims.get(claimKey(request)) : undefined;
    if (claim === undefined) return undefined;
    return claim.digest === request.idempotency?.digest
      ? { outcome: 'joined', stored: claim }
      : { outcome: 'idempotency_conflict', detail: {} };
  }

  private checkFence({ workspace, fence }: AppendRequest): Verdict | undefined {
    if (fence === undefined) return undefined;
    const { acquire } = fence;
    if (acquire) this.leases?.take(fence.workspace ?? workspace, fence.lease, acquire.owner, acquire.ttlMs);
    const held = this.leases?.inspect(fence.workspace ?? workspace, fence.lease);
    return held?.owner !== null && held?.epoch === fence.epoch
      ? undefined
      : { outcome: 'fenced', detail: { actual: held?.epoch ?? 0 } };
  }

  private checkVersions({
    request: { workspace, guards = [] },
    streams,
  }: PreparedAppend): Verdict | undefined {
    const guarded = guards.map(({ streamId, version }) => ({ streamId, expectedVersion: version }));
    for (const { streamId, expectedVersion } of [...streams, ...guarded]) {
      const actual = this.versionOf(workspace, streamId);
      if (expectedVersion !== null && expectedVersion !== actual)
        return { outcome: 'version_conflict', detail: { streamId, expected: expectedVersion, actual } };
    }
    return undefined;
  }

  private record({ request: { workspace }, streams }: PreparedAppend, recordedAt: string): void {
    for (const { streamId, category, events } of streams) {
      const key = streamKey(workspace, streamId);
      const stream = this.streams.get(key) ?? [];
      this.streams.set(key, stream);
      for (const event of events) {
        const last = stream.at(-1);
        const previous = last ? Buffer.from(last.hash, 'hex') : genesisHash(workspace);
        const placed = { ...event, streamId, streamVersion: stream.length + 1 };
        const stored: RecordedEvent = {
          ...placed,
          position: this.events.length + 1,
          workspace,
          category,
          data: JSON.parse(event.data) as JsonObject,
          metadata: JSON.parse(event.metadata) as EventMetadata,
          recordedAt,
          hash: hashEvent(previous, placed).toString('hex'),
        };
        stream.push(stored);
        this.events.push(stored);
        this.byId.set(event.eventId, stored);
      }
    }
  }
}

export interface MemoryEventStore extends EventStore {
  /** Returns the same log for a service that owns other categories. */
  forOwner(owns: (category: string) => boolean): EventStore;
}

/**
 * Creates a log in this process's memory that meets the contract of the PostgreSQL log. It is for
 * tests and demonstrations, never for facts.
 */
export const createMemoryEventStore = (options: MemoryEventStoreOptions = {}): MemoryEventStore => {
  const { clock = systemClock, leases, onAppended, owns = () => true } = options;
  const log = new MemoryLog(leases);
  const { readStream, readStreamPage, readLog, readLogPage, streamVersion, basePosition, headPosition } = log;
  const reads = {
    ...{ readStream, readStreamPage, readLog, readLogPage },
    ...{ streamVersion, basePosition, headPosition },
  };

  const forOwner = (isOwned: (category: string) => boolean): EventStore => ({
    append: async (request) => {
      const prepared = prepareAppend(request);
      const verdict = log.check(prepared, isOwned);
      if (verdict === undefined) {
        const result = log.write(prepared, isoTime(clock));
        onAppended?.();
        return result;
      }
      if ('detail' in verdict) throw createRejection(verdict.outcome, request, verdict.detail);
      const { versions, firstPosition, lastPosition, response } = verdict.stored;
      return createAppendResult(verdict.outcome, versions, firstPosition, lastPosition, response);
    },
    ...reads,
  });

  return { ...forOwner(owns), forOwner };
};
