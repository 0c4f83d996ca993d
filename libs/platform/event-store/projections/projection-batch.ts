import type pg from 'pg';
import { failpoint } from '@antiphon/kernel';
import type { RecordedEvent } from '../event-store.port.js';
import { runWithMove } from './projection-checkpoint.js';
import type { ProjectionSource } from './projection-definition.js';
import {
  isPoison,
  parkLostStream,
  parkStream,
  readParkedStreams,
  toStreamKey,
} from './projection-parking.js';
import type { ProjectionSnapshot } from './projection-snapshot.js';

/** With `behind` there are more events; with `contended` another process moved the checkpoint. */
export interface BatchResult {
  readonly state: 'caught_up' | 'behind' | 'contended';
  readonly position: number;
  readonly parked: readonly ParkedEvent[];
}

/** An event that failed, and whose stream is parked. */
export interface ParkedEvent {
  readonly event: RecordedEvent;
  readonly error: unknown;
}

type Handler = Pick<ProjectionSource, 'name' | 'handle' | 'retryDelaysMs'>;
type Events = readonly RecordedEvent[];

/** Applies a batch of events in the caller's transaction and returns those that were parked. */
type ApplyEvents = (
  handler: Handler,
  client: pg.ClientBase,
  events: Events,
) => Promise<readonly ParkedEvent[]>;

const applyTogether: ApplyEvents = async ({ handle }, client, events) => {
  if (events.length > 0) await handle(client, events);
  return [];
};

/** Applies each event under its own savepoint. An event that fails parks its stream. */
const applyOneByOne: ApplyEvents = async ({ name, handle, retryDelaysMs }, client, events) => {
  const parked = new Map<string, ParkedEvent>();
  for (const event of events) {
    if (parked.has(toStreamKey(event))) continue;
    await client.query('savepoint antiphon_event');
    try {
      await handle(client, [event]);
    } catch (error) {
      if (!isPoison(error)) throw error;
      await client.query('rollback to savepoint antiphon_event');
      await parkStream(client, name, event, error, retryDelaysMs);
      parked.set(toStreamKey(event), { event, error });
    }
    await client.query('release savepoint antiphon_event');
  }
  return [...parked.values()];
};

const withoutParkedStreams = async (name: string, client: pg.ClientBase, events: Events): Promise<Events> => {
  const parked = await readParkedStreams(client, name);
  return parked.size === 0 ? events : events.filter((event) => !parked.has(toStreamKey(event)));
};

/**
 * Applies events in the caller's transaction. It skips parked streams and parks events that fail.
 */
export const applyInTransaction: ApplyEvents = async (handler, client, events) => {
  const free = await withoutParkedStreams(handler.name, client, events);
  await client.query('savepoint antiphon_batch');
  let parked: readonly ParkedEvent[];
  try {
    parked = await applyTogether(handler, client, free);
  } catch (error) {
    if (!isPoison(error)) throw error;
    await client.query('rollback to savepoint antiphon_batch');
    parked = await applyOneByOne(handler, client, free);
  }
  // A long transaction has many batches: without the release, their savepoints would nest.
  await client.query('release savepoint antiphon_batch');
  return parked;
};

const describeEvents = (name: string, events: Events): string =>
  events.map(({ workspace, streamId, type }) => `${name}/${type} ${workspace} ${streamId}`).join(' ');

const moveAndApply = async (
  source: ProjectionSource,
  snapshot: ProjectionSnapshot,
  apply: ApplyEvents,
  { waitForMove }: { readonly waitForMove: boolean },
): Promise<BatchResult> => {
  const { name, pool } = source;
  const { position, upTo, head, epoch, events, hasParkedStreams } = snapshot;
  const work = async (client: pg.ClientBase): Promise<readonly ParkedEvent[]> => {
    const free = hasParkedStreams ? await withoutParkedStreams(name, client, events) : events;
    await failpoint('work.events.applied', () => describeEvents(name, free));
    const parked = await apply(source, client, free);
    await failpoint('projection.rows.written');
    return parked;
  };
  const moved = await runWithMove(pool, { name, from: position, to: upTo, epoch }, work, {
    // Parking moves the checkpoint, but a retry of a parked stream only locks it. So while a stream
    // is parked, the list of parked streams is certain only after the move.
    waitForMove: hasParkedStreams || waitForMove,
  });
  await failpoint('projection.batch.committed');
  if (moved.state === 'contended') return { state: 'contended', position, parked: [] };
  return { state: upTo < head ? 'behind' : 'caught_up', position: upTo, parked: moved.result };
};

/**
 * Moves the checkpoint and applies the events of a snapshot in one transaction. If an event fails,
 * applies the batch again one by one, so that only the stream of that event stops. With
 * `isContended`, another process won the previous batch: the work then waits for the move.
 */
export const runBatch = async (
  source: ProjectionSource,
  snapshot: ProjectionSnapshot,
  isContended: boolean,
): Promise<BatchResult> => {
  await failpoint('projection.batch.read');
  try {
    return await moveAndApply(source, snapshot, applyTogether, { waitForMove: isContended });
  } catch (error) {
    if (!isPoison(error)) throw error;
    return moveAndApply(source, snapshot, applyOneByOne, { waitForMove: true });
  }
};

/** Moves the checkpoint past an event that ended its processes, and parks the stream of it. */
export const parkLostEvent = async (
  { name, pool }: ProjectionSource,
  { position, upTo, head, epoch }: ProjectionSnapshot,
  event: RecordedEvent,
  lost: number,
): Promise<BatchResult['state']> => {
  const park = (client: pg.ClientBase): Promise<void> => parkLostStream(client, name, event, lost);
  const moved = await runWithMove(pool, { name, from: position, to: upTo, epoch }, park, {
    waitForMove: true,
  });
  if (moved.state === 'contended') return 'contended';
  return upTo < head ? 'behind' : 'caught_up';
};
