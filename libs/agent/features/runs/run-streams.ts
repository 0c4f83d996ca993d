import type { z } from 'zod';
import { upcast } from '@antiphon/contracts/events';
import type { EventStore, IdempotencyClaim, NewEvent, StreamAppend } from '@antiphon/event-store';
import { bug, isAppError } from '@antiphon/kernel';
import type { Decider, Ids, JsonObject } from '@antiphon/kernel';
import type { IncomingContext } from '@antiphon/observability';
import { eventMetadata } from '../event-envelope.js';

interface AnyEvent {
  readonly type: string;
  readonly schemaVersion: number;
  readonly data: object;
}

/** An event stream folded to its end. */
export interface Folded<State> {
  readonly state: State;
  /** 0: there is no such event stream. */
  readonly version: number;
  /** Who asked for what it tells of: what is done for it later carries the same correlation. */
  readonly origin: IncomingContext;
}

/** What to append to a stream, and what must be appended with it or not at all. */
export interface Decided<Event> {
  readonly events: readonly Event[];
  readonly also?: readonly StreamAppend[];
  readonly idempotency?: IdempotencyClaim;
}

export type Committed<State> = Folded<State> & {
  /** With `joined`: the answer to the first request of the same key. */
  readonly joined?: JsonObject;
};

/** Small event streams that are read whole: workflows and runs. */
export interface EventFold<State, Event> {
  read(workspace: string, id: string): Promise<Folded<State>>;
  /** Decides and appends; decides anew when somebody else appended first. Without events nothing is appended. */
  commit(
    workspace: string,
    id: string,
    decide: (folded: Folded<State>) => Decided<Event> | Promise<Decided<Event>>,
  ): Promise<Committed<State>>;
}

export interface EventFoldOptions<State, Command, Event> {
  readonly store: EventStore;
  readonly ids: Ids;
  readonly decider: Decider<State, Command, Event>;
  readonly schema: z.ZodType<Event>;
  readonly streamOf: (id: string) => string;
}

/** Tasks of one run that end at once conflict with each other; each round one of them gets through. */
const MAX_ROUNDS = 100;

export const toNewEvent = ({ type, schemaVersion, data }: AnyEvent, ids: Ids): NewEvent => ({
  eventId: ids.next(),
  type,
  schemaVersion,
  data: data as JsonObject,
  metadata: eventMetadata(),
});

export const createEventFold = <State, Command, Event extends AnyEvent>({
  store,
  ids,
  decider,
  schema,
  streamOf,
}: EventFoldOptions<State, Command, Event>): EventFold<State, Event> => {
  const read = async (workspace: string, id: string): Promise<Folded<State>> => {
    const recorded = await store.readStream(workspace, streamOf(id));
    const state = recorded.reduce((before, event) => {
      const parsed = schema.safeParse(upcast(event));
      if (!parsed.success)
        throw bug('WORKFLOW.EVENT_UNKNOWN', `this version does not know ${event.type}`, {
          cause: parsed.error,
        });
      return decider.evolve(before, parsed.data);
    }, decider.initialState());
    const first = recorded[0];
    const { correlationId, traceparent } = first?.metadata ?? {};
    return {
      state,
      version: recorded.length,
      origin: { correlationId, traceparent, causationId: first?.eventId },
    };
  };

  const append = async (
    workspace: string,
    id: string,
    folded: Folded<State>,
    { events, also = [], idempotency }: Decided<Event>,
  ): Promise<Committed<State>> => {
    if (events.length === 0) return folded;
    const own = {
      streamId: streamOf(id),
      expectedVersion: folded.version,
      events: events.map((event) => toNewEvent(event, ids)),
    };
    const request = { workspace, streams: [own, ...also], ...(idempotency ? { idempotency } : {}) };
    const { outcome, response } = await store.append(request);
    const state = events.reduce((before, event) => decider.evolve(before, event), folded.state);
    const version = folded.version + events.length;
    return { ...folded, state, version, ...(outcome === 'joined' && response ? { joined: response } : {}) };
  };

  return {
    read,
    commit: async (workspace, id, decide) => {
      for (let round = 1; ; round++) {
        const folded = await read(workspace, id);
        try {
          return await append(workspace, id, folded, await decide(folded));
        } catch (error) {
          if (!isAppError(error) || error.code !== 'LOG.VERSION_CONFLICT' || round === MAX_ROUNDS)
            throw error;
        }
      }
    },
  };
};
