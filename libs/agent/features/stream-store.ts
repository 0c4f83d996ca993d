import type { z } from 'zod';
import { upcast } from '@antiphon/contracts/events';
import type {
  EventStore,
  Fence,
  IdempotencyClaim,
  NewEvent,
  RecordedEvent,
  StreamAppend,
} from '@antiphon/event-store';
import { bug, isAppError } from '@antiphon/kernel';
import type { Decider, Ids, JsonObject } from '@antiphon/kernel';
import type { IncomingContext } from '@antiphon/observability';
import { toNewEvent } from './event-envelope.js';

/** State of an event stream after its last event. */
export interface Folded<State> {
  readonly state: State;
  /** 0 if the event stream does not exist. */
  readonly version: number;
  /** Request that created the stream. Later work for it carries the same correlation. */
  readonly origin: IncomingContext;
}

/** Events to append to a stream, and appends to other streams in the same transaction. */
export interface Decision<Event> {
  readonly events: readonly Event[];
  /** Appends to other streams; a function gets the stored form of `events`. */
  readonly also?: readonly StreamAppend[] | ((events: readonly NewEvent[]) => readonly StreamAppend[]);
  readonly idempotency?: IdempotencyClaim;
  readonly fence?: Fence;
}

export type Committed<State> = Folded<State> & {
  /** Response to the first request with the same idempotency key, if there was one. */
  readonly joined?: JsonObject;
};

/**
 * Maximum number of commit rounds. Tasks of one run that end at the same time conflict with each
 * other, and one of them succeeds in each round.
 */
const MAX_ROUNDS = 100;

const isVersionConflict = (error: unknown): boolean =>
  isAppError(error) && error.code === 'LOG.VERSION_CONFLICT';

/** Calls `work` again after a version conflict, up to `maxRounds` times: optimistic concurrency. */
export const retryConflicts = async <T>(work: () => Promise<T>, maxRounds: number): Promise<T> => {
  for (let round = 1; ; round++) {
    try {
      return await work();
    } catch (error) {
      if (!isVersionConflict(error) || round === maxRounds) throw error;
    }
  }
};

export interface StreamStoreOptions<State, Command, Event> {
  readonly store: EventStore;
  readonly ids: Ids;
  readonly decider: Decider<State, Command, Event>;
  readonly schema: z.ZodType<Event>;
  readonly streamOf: (id: string) => string;
}

interface AnyEvent {
  readonly type: string;
  readonly schemaVersion: number;
  readonly data: object;
}

/**
 * Reads and appends event streams that are small enough to fold from the start: workflows and runs.
 */
export class StreamStore<State, Command, Event extends AnyEvent> {
  constructor(private readonly options: StreamStoreOptions<State, Command, Event>) {}

  /** Folds a stream up to a position of the log. Throws as `readEvents` does. */
  async read(workspace: string, id: string, upTo = Number.MAX_SAFE_INTEGER): Promise<Folded<State>> {
    const { decider } = this.options;
    const recorded = await this.readRecorded(workspace, id, upTo);
    const state = recorded.reduce(
      (before, event) => decider.evolve(before, this.parse(event)),
      decider.initialState(),
    );
    const first = recorded[0];
    const { correlationId, traceparent } = first?.metadata ?? {};
    return {
      state,
      version: recorded.length,
      origin: { correlationId, traceparent, causationId: first?.eventId },
    };
  }

  /**
   * Reads the events of a stream up to a position of the log. Throws `WORKFLOW.EVENT_UNKNOWN`, a
   * bug, for an event of a newer version.
   */
  async readEvents(workspace: string, id: string, upTo: number): Promise<Event[]> {
    return (await this.readRecorded(workspace, id, upTo)).map((event) => this.parse(event));
  }

  /**
   * Reads a stream, decides, and appends. Decides again after a version conflict. Without events it
   * appends nothing. A caller that knows the fold of the stream saves the first read.
   */
  commit(
    workspace: string,
    id: string,
    decide: (folded: Folded<State>) => Decision<Event> | Promise<Decision<Event>>,
    known?: Pick<Folded<State>, 'state' | 'version'>,
  ): Promise<Committed<State>> {
    let first = known;
    return retryConflicts(async () => {
      const folded = first ? { ...first, origin: {} } : await this.read(workspace, id);
      first = undefined;
      return this.append(workspace, id, folded, await decide(folded));
    }, MAX_ROUNDS);
  }

  private async readRecorded(workspace: string, id: string, upTo: number): Promise<RecordedEvent[]> {
    const { store, streamOf } = this.options;
    const all = await store.readStream(workspace, streamOf(id));
    return all.filter(({ position }) => position <= upTo);
  }

  private parse(recorded: RecordedEvent): Event {
    const { data, error } = this.options.schema.safeParse(upcast(recorded));
    if (error)
      throw bug('WORKFLOW.EVENT_UNKNOWN', `this version does not know ${recorded.type}`, { cause: error });
    return data;
  }

  private async append(
    workspace: string,
    id: string,
    folded: Folded<State>,
    { events, also = [], idempotency, fence }: Decision<Event>,
  ): Promise<Committed<State>> {
    if (events.length === 0) return folded;
    const { store, ids, streamOf, decider } = this.options;
    const stored = events.map((event) => toNewEvent(event, ids));
    const own = { streamId: streamOf(id), expectedVersion: folded.version, events: stored };
    const others = typeof also === 'function' ? also(stored) : also;
    const request = { workspace, streams: [own, ...others], idempotency, ...(fence ? { fence } : {}) };
    const { outcome, response } = await store.append(request);
    const state = events.reduce((before, event) => decider.evolve(before, event), folded.state);
    const version = folded.version + events.length;
    return { ...folded, state, version, joined: outcome === 'joined' ? response : undefined };
  }
}
