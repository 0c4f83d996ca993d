import type { NewEvent } from '../event-store.port.js';
import { AggregateStore } from './aggregate-store.js';
import type { AggregateOptions } from './aggregate-store.js';

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
