import type pg from 'pg';
import { failpoint } from '@antiphon/kernel';
import type { RecordedEvent } from '../event-store.port.js';
import type { Look } from './projection-snapshot.js';
import { isPoison, park, parkedStreams, streamKeyOf } from './projection-parking.js';
import type { ProjectionSource } from './projection-source.js';
import { inMove } from './projection-transaction.js';

/** `behind`: there is more to read. `elsewhere`: another process has the checkpoint just now. */
export interface BatchResult {
  readonly state: 'caught_up' | 'behind' | 'elsewhere';
  readonly position: number;
  readonly parked: readonly ParkedEvent[];
}

export interface ParkedEvent {
  readonly event: RecordedEvent;
  readonly error: unknown;
}

/** What of a projection is needed to apply events. */
export type Folding = Pick<ProjectionSource, 'name' | 'handle' | 'retryDelaysMs'>;

/** One by one, each behind a savepoint: what cannot be handled parks its stream, the rest goes on. */
const handleOneByOne = async (
  { name, handle, retryDelaysMs }: Folding,
  client: pg.ClientBase,
  events: readonly RecordedEvent[],
): Promise<ParkedEvent[]> => {
  const parked = new Map<string, ParkedEvent>();
  for (const event of events) {
    if (parked.has(streamKeyOf(event))) continue;
    await client.query('savepoint antiphon_event');
    try {
      await handle(client, [event]);
    } catch (error) {
      if (!isPoison(error)) throw error;
      await client.query('rollback to savepoint antiphon_event');
      await park(client, name, event, error, retryDelaysMs);
      parked.set(streamKeyOf(event), { event, error });
    }
    await client.query('release savepoint antiphon_event');
  }
  return [...parked.values()];
};

const handleAll = async (
  { handle }: Folding,
  client: pg.ClientBase,
  events: readonly RecordedEvent[],
): Promise<ParkedEvent[]> => {
  if (events.length > 0) await handle(client, events);
  return [];
};

type Strategy = typeof handleAll;

const freeOf = async (
  name: string,
  client: pg.ClientBase,
  events: readonly RecordedEvent[],
): Promise<readonly RecordedEvent[]> => {
  const held = await parkedStreams(client, name);
  return held.size === 0 ? events : events.filter((event) => !held.has(streamKeyOf(event)));
};

/** Applies events in the caller's transaction: those of parked streams not, and what cannot be handled is parked. */
export const applyWithin = async (
  folding: Folding,
  client: pg.ClientBase,
  events: readonly RecordedEvent[],
): Promise<readonly ParkedEvent[]> => {
  const free = await freeOf(folding.name, client, events);
  await client.query('savepoint antiphon_batch');
  let parked: readonly ParkedEvent[];
  try {
    parked = await handleAll(folding, client, free);
  } catch (error) {
    if (!isPoison(error)) throw error;
    await client.query('rollback to savepoint antiphon_batch');
    parked = await handleOneByOne(folding, client, free);
  }
  // A long transaction has many batches: unreleased, each would lie within the one before.
  await client.query('release savepoint antiphon_batch');
  return parked;
};

interface Run {
  readonly strategy: Strategy;
  readonly waitForMove: boolean;
}

const runWith = async (source: ProjectionSource, seen: Look, run: Run): Promise<BatchResult> => {
  const { name, pool } = source;
  const { position, upTo, head, epoch, events, parked: anyParked } = seen;
  const work = async (client: pg.ClientBase): Promise<readonly ParkedEvent[]> => {
    const free = anyParked ? await freeOf(name, client, events) : events;
    const newlyParked = await run.strategy(source, client, free);
    await failpoint('projection.rows.written');
    return newlyParked;
  };
  // Parking moves the checkpoint, a replay of what is parked does not: who is parked is known behind the move only.
  const waitForMove = anyParked || run.waitForMove;
  const moved = await inMove(pool, { name, from: position, to: upTo, epoch }, work, { waitForMove });
  await failpoint('projection.batch.committed');
  if (moved.state === 'elsewhere') return { state: 'elsewhere', position, parked: [] };
  return { state: upTo < head ? 'behind' : 'caught_up', position: upTo, parked: moved.result };
};

/**
 * One transaction: moves the checkpoint from where it was seen, and applies what was seen. When an event cannot be
 * handled, the batch is done over, one by one, so that only that event's stream stops. `contended`: another process
 * was faster the last time, so nothing is handled before it is known not to be this time.
 */
export const runBatch = async (
  source: ProjectionSource,
  seen: Look,
  contended: boolean,
): Promise<BatchResult> => {
  await failpoint('projection.batch.read');
  try {
    return await runWith(source, seen, { strategy: handleAll, waitForMove: contended });
  } catch (error) {
    if (!isPoison(error)) throw error;
    return runWith(source, seen, { strategy: handleOneByOne, waitForMove: true });
  }
};
