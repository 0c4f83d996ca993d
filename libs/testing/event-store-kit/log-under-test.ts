import { randomUUID } from 'node:crypto';
import type {
  AppendRequest,
  EventStore,
  LeaseStore,
  NewEvent,
  RecordedEvent,
  StreamAppend,
} from '@antiphon/event-store';

/**
 * One adapter of the event store, as two services use it, with the leases that fences are checked
 * against.
 */
export interface LogUnderTest {
  /** May append to `session-*`. */
  readonly agent: EventStore;
  /** May append to `budget-*` and not to `session-*`. */
  readonly metering: EventStore;
  readonly leases: LeaseStore;
  close(): Promise<void>;
}

export type MakeLog = () => Promise<LogUnderTest>;
/** Returns the opened log. Call it once the tests run. */
export type OpenedLog = () => LogUnderTest;

/** Returns the name of a workspace that no other test uses. */
export const freshWorkspace = (): string => `w-${randomUUID().slice(0, 13)}`;
export const freshStream = (category = 'session'): string => `${category}-${randomUUID()}`;

export const newEvent = (
  data: NewEvent['data'] = { text: 'hello' },
  more: Partial<NewEvent> = {},
): NewEvent => ({
  eventId: randomUUID(),
  type: 'Noted',
  schemaVersion: 1,
  data,
  metadata: { correlationId: 'spec', service: 'agent' },
  ...more,
});

/** Builds an append of `count` new events to one stream. */
export const toStream = (
  streamId: string,
  expectedVersion: StreamAppend['expectedVersion'],
  count = 1,
): StreamAppend => ({ streamId, expectedVersion, events: Array.from({ length: count }, () => newEvent()) });

export const request = (
  workspace: string,
  streams: readonly StreamAppend[],
  more: Partial<AppendRequest> = {},
): AppendRequest => ({ workspace, streams, ...more });

/** Reads every event of a workspace, in order of position. */
export const eventsOf = async (store: EventStore, workspace: string): Promise<RecordedEvent[]> =>
  (await store.readLog({ after: 0, limit: 100_000 })).filter((event) => event.workspace === workspace);

/**
 * Returns the outcome of an append: `appended`, `duplicate`, `joined`, or the code of its error.
 */
export const outcomeOf = async (append: Promise<{ outcome: string }>): Promise<string> =>
  append.then(
    ({ outcome }) => outcome,
    (error: { code?: string }) => error.code ?? String(error),
  );
