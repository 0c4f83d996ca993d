import { sleep } from '@antiphon/kernel';
import type { JsonObject } from '@antiphon/kernel';
import type { IncomingContext } from '@antiphon/observability';
import type { AppendResult, EventStore, NewEvent, RecordedEvent, StreamAppend } from '../event-store.port.js';
import { AggregateCache } from './aggregate-cache.js';
import type { CacheOptions, Kept, StateAt } from './aggregate-cache.js';
import { toAppendRequest } from './append-decision.js';
import type { AppendDecision } from './append-decision.js';
import { isVersionConflict, retryConflicts } from './retry-conflicts.js';

export interface Folded<State> extends StateAt<State> {
  /**
   * Request that created the stream; empty for a fold that was not read from its first event. Later
   * work for it carries the same correlation.
   */
  readonly origin: IncomingContext;
}

export interface Decision<Event> extends AppendDecision<Event> {
  /** Appends the aggregate's events within another commit. Returns false if it appended nothing. */
  readonly join?: (own: StreamAppend) => Promise<boolean>;
}

export interface Committed<State> extends Folded<State> {
  /** Null if this store appended nothing. */
  readonly result: AppendResult | null;
  /** False also for a request that joined an earlier one. */
  readonly isAppended: boolean;
  /** Response to the first request with the same idempotency key, if there was one. */
  readonly joined?: JsonObject | undefined;
}

export type Decide<State, Event> = (folded: Folded<State>) => Decision<Event> | Promise<Decision<Event>>;

export interface AggregateOptions<State, Event> {
  readonly store: Pick<EventStore, 'append' | 'readStream'>;
  readonly streamOf: (workspace: string, id: string) => string;
  /** Returns a stored event as the fold takes it; null for one that the fold ignores. */
  readonly parse: (recorded: RecordedEvent) => Event | null;
  /** Returns the stored form of a decided event, with its id and its origin. */
  readonly toNewEvent: (event: Event) => NewEvent;
  readonly decider: { readonly initialState: () => State; evolve(state: State, event: Event): State };
  /** Applies many events at once. Default: `evolve` for each. */
  readonly fold?: (state: State, events: readonly Event[]) => State;
  /** `last`: the newest event alone gives the state. */
  readonly reads?: 'all' | 'last';
  /** Applies the events after a fold. Default: reads the stream at once. */
  readonly readAfter?: (workspace: string, id: string, known: StateAt<State>) => Promise<StateAt<State>>;
  readonly cache?: CacheOptions<State>;
  /** Returns true if events build on other streams, so that the state after them has to be read. */
  readonly mustReadAfter?: (events: readonly Event[]) => boolean;
  /** Appends the other streams of a decision also without events of the aggregate. */
  readonly appendsOthersAlone?: boolean;
  /**
   * Returns whether a failed round is decided again. Default: after a conflict of any stream.
   * `isKept` is true for a round that decided on a kept fold.
   */
  readonly isStale?: (error: unknown, streamId: string, isKept: boolean) => boolean;
  /** Maximum number of rounds. One of several competing changes succeeds in each. */
  readonly maxRounds?: number;
}

const MAX_ROUNDS = 100;

interface Place {
  readonly workspace: string;
  readonly id: string;
}

/**
 * Reads, decides on and appends the event streams of one kind of aggregate. A change is decided
 * again after a conflict. The event store traces each attempt as a span.
 */
export class AggregateStore<State, Event> {
  private readonly cache: AggregateCache<State> | null;

  constructor(private readonly options: AggregateOptions<State, Event>) {
    const { cache, decider } = options;
    this.cache = cache ? new AggregateCache(cache, decider.initialState) : null;
  }

  /** Folds a stream up to now, or up to a position of the log. Throws as `parse` does. */
  async read(workspace: string, id: string, upTo?: number): Promise<Folded<State>> {
    if (!this.cache || upTo !== undefined) return this.readWhole(workspace, id, upTo);
    const kept = this.cache.open(workspace, id);
    return kept.enqueue(() => this.refresh({ workspace, id }, kept));
  }

  /** Returns the fold that this process last saw; null if it keeps none. */
  kept(workspace: string, id: string): State | null {
    const kept = this.cache?.open(workspace, id);
    return kept?.isLoaded ? kept.folded.state : null;
  }

  /** Reads the events of a stream up to a position of the log. Throws as `parse` does. */
  async readEvents(workspace: string, id: string, upTo: number): Promise<Event[]> {
    return this.parseAll(await this.readRecorded(workspace, id, upTo));
  }

  /**
   * Reads a stream, decides, and appends. Decides again after a conflict. Without events it appends
   * nothing. A caller that knows the fold of the stream saves the first read.
   */
  commit(
    workspace: string,
    id: string,
    decide: Decide<State, Event>,
    known?: StateAt<State>,
  ): Promise<Committed<State>> {
    const place = { workspace, id };
    if (!this.cache) return this.commitNow(place, decide, null, known);
    const { maxPauseMs, decidesOnKept = false } = this.cache.options;
    const kept = this.cache.open(workspace, id);
    kept.waiting++;
    return kept.enqueue(async () => {
      try {
        const first = decidesOnKept ? kept.folded : undefined;
        const committed = await this.commitNow(place, decide, kept, known ?? first);
        if (maxPauseMs !== undefined && kept.waiting > 1) await sleep(Math.random() * maxPauseMs);
        return committed;
      } finally {
        kept.waiting--;
      }
    });
  }

  /**
   * Appends what was decided outside: on a version that the caller knows, or facts that are true at
   * `any` version.
   */
  appendAt(
    workspace: string,
    id: string,
    expectedVersion: StreamAppend['expectedVersion'],
    events: readonly Event[],
    more: Omit<AppendDecision<Event>, 'events'> = {},
  ): Promise<AppendResult> {
    const own = this.appendOf(workspace, id, expectedVersion, events);
    return this.options.store.append(toAppendRequest(workspace, own, { ...more, events }));
  }

  /** Returns the append to a stream, for a commit of another aggregate. */
  appendOf(
    workspace: string,
    id: string,
    expectedVersion: StreamAppend['expectedVersion'],
    events: readonly Event[],
  ): StreamAppend {
    const { streamOf, toNewEvent } = this.options;
    return { streamId: streamOf(workspace, id), expectedVersion, events: events.map(toNewEvent) };
  }

  private commitNow(
    place: Place,
    decide: Decide<State, Event>,
    kept: Kept<State> | null,
    known: StateAt<State> | undefined,
  ): Promise<Committed<State>> {
    const { streamOf, maxRounds = MAX_ROUNDS, isStale = (error) => isVersionConflict(error) } = this.options;
    const streamId = streamOf(place.workspace, place.id);
    const isKept = (round: number): boolean => round === 1 && known !== undefined;
    return retryConflicts(
      async (round) => {
        const folded = isKept(round) && known ? { origin: {}, ...known } : await this.readFolded(place, kept);
        return this.append(place, kept, folded, await decide(folded));
      },
      { maxRounds, isStale: (error, round) => isStale(error, streamId, isKept(round)) },
    );
  }

  private async append(
    place: Place,
    kept: Kept<State> | null,
    folded: Folded<State>,
    decision: Decision<Event>,
  ): Promise<Committed<State>> {
    const { events } = decision;
    const hasOthers = this.options.appendsOthersAlone === true && (decision.also?.length ?? 0) > 0;
    if (events.length === 0 && !hasOthers) return { ...folded, result: null, isAppended: false };
    const appended = await this.send(place, folded.version, decision);
    if (kept && (!appended.isAppended || this.options.mustReadAfter?.(events)))
      return { ...(await this.refresh(place, kept)), ...appended };
    const after = { state: this.fold(folded.state, events), version: folded.version + events.length };
    if (kept) kept.folded = after;
    return { ...folded, ...after, ...appended };
  }

  private async send(
    { workspace, id }: Place,
    version: number,
    decision: Decision<Event>,
  ): Promise<Pick<Committed<State>, 'result' | 'isAppended' | 'joined'>> {
    const { events, join } = decision;
    const own = events.length === 0 ? null : this.appendOf(workspace, id, version, events);
    if (join && own) return { result: null, isAppended: await join(own) };
    const result = await this.options.store.append(toAppendRequest(workspace, own, decision));
    const joined = result.outcome === 'joined' ? (result.response ?? {}) : undefined;
    return { result, isAppended: result.outcome === 'appended', joined };
  }

  private readFolded(place: Place, kept: Kept<State> | null): Promise<Folded<State>> {
    return kept ? this.refresh(place, kept) : this.readWhole(place.workspace, place.id);
  }

  private async refresh({ workspace, id }: Place, kept: Kept<State>): Promise<Folded<State>> {
    const { readAfter = this.readEventsAfter.bind(this) } = this.options;
    const folded = await this.cache?.refresh(workspace, id, kept, (known) => readAfter(workspace, id, known));
    return { origin: {}, ...(folded ?? kept.folded) };
  }

  private async readEventsAfter(workspace: string, id: string, { state, version }: StateAt<State>) {
    const { store, streamOf } = this.options;
    const stream = streamOf(workspace, id);
    const recorded = await store.readStream(workspace, stream, { fromVersion: version + 1 });
    return { state: this.fold(state, this.parseAll(recorded)), version: version + recorded.length };
  }

  private async readWhole(workspace: string, id: string, upTo?: number): Promise<Folded<State>> {
    const recorded = await this.readRecorded(workspace, id, upTo);
    const state = this.fold(this.options.decider.initialState(), this.parseAll(recorded));
    const [first] = recorded;
    const { correlationId, traceparent } = first?.metadata ?? {};
    const origin = { correlationId, traceparent, causationId: first?.eventId };
    return { state, version: recorded.at(-1)?.streamVersion ?? 0, origin };
  }

  private async readRecorded(workspace: string, id: string, upTo?: number): Promise<RecordedEvent[]> {
    const { store, streamOf, reads = 'all' } = this.options;
    const streamId = streamOf(workspace, id);
    const newest = { backwards: true, limit: 1 };
    if (reads === 'last' && upTo === undefined) return store.readStream(workspace, streamId, newest);
    const all = await store.readStream(workspace, streamId);
    const found = upTo === undefined ? all : all.filter(({ position }) => position <= upTo);
    return reads === 'last' ? found.slice(-1) : found;
  }

  /** Returns stored events as the fold takes them. Throws as `parse` does. */
  parseAll(recorded: readonly RecordedEvent[]): Event[] {
    return recorded.flatMap((event) => this.options.parse(event) ?? []);
  }

  private fold(state: State, events: readonly Event[]): State {
    const { fold, decider } = this.options;
    if (fold) return events.length === 0 ? state : fold(state, events);
    return events.reduce((before, event) => decider.evolve(before, event), state);
  }
}

/** Appends stored events, without a fold. */
export type FactLog = Pick<AggregateStore<null, NewEvent>, 'appendAt' | 'appendOf'>;

/**
 * Creates a log for facts whose ids and metadata the caller chooses. A repeat with an id that
 * derives from a request appends nothing.
 */
export const createFactLog = (
  store: Pick<AggregateOptions<null, NewEvent>['store'], 'append'>,
  streamOf: (workspace: string, id: string) => string,
): FactLog =>
  new AggregateStore<null, NewEvent>({
    store: { append: (request) => store.append(request), readStream: () => Promise.resolve([]) },
    ...{ streamOf, parse: () => null, toNewEvent: (event) => event },
    decider: { initialState: () => null, evolve: () => null },
  });
