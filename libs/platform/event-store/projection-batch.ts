import type pg from 'pg';
import { inTransaction } from '@antiphon/database';
import type { RecordedEvent } from './event-store.port.js';
import { readWindow } from './log-reader.js';
import { claimCheckpoint, moveCheckpoint } from './projection-checkpoint.js';
import type { ProjectionSource } from './projection-source.js';
import { isPoison, park, parkedStreams, streamKeyOf } from './projection-parking.js';

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

/** Positions that one transaction may pass over, so that a rare category does not scan the whole log at once. */
const WINDOW = 20_000;

/** One by one, each behind a savepoint: what cannot be handled parks its stream, the rest goes on. */
const handleOneByOne = async (
  { name, handle }: ProjectionSource,
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
      await park(client, name, event, error);
      parked.set(streamKeyOf(event), { event, error });
    }
    await client.query('release savepoint antiphon_event');
  }
  return [...parked.values()];
};

const handleAll = async (
  { handle }: ProjectionSource,
  client: pg.ClientBase,
  events: readonly RecordedEvent[],
): Promise<ParkedEvent[]> => {
  if (events.length > 0) await handle(client, events);
  return [];
};

type Strategy = typeof handleAll;

const runWith = (source: ProjectionSource, strategy: Strategy): Promise<BatchResult> =>
  inTransaction(source.pool, async (client) => {
    const position = await claimCheckpoint(client, source.name);
    if (position === null) return { state: 'elsewhere', position: 0, parked: [] };
    const window = { after: position, limit: source.batchSize, span: WINDOW, categories: source.categories };
    const { events, upTo, head } = await readWindow(client, window);
    if (upTo === position) return { state: 'caught_up', position, parked: [] };
    const held = await parkedStreams(client, source.name);
    const parked = await strategy(
      source,
      client,
      events.filter((event) => !held.has(streamKeyOf(event))),
    );
    await moveCheckpoint(client, source.name, upTo);
    return { state: upTo < head ? 'behind' : 'caught_up', position: upTo, parked };
  });

/**
 * One transaction: takes the checkpoint, reads on, applies, moves the checkpoint. When an event cannot be
 * handled, the batch is done over, one by one, so that only that event's stream stops.
 */
export const runBatch = async (source: ProjectionSource): Promise<BatchResult> => {
  try {
    return await runWith(source, handleAll);
  } catch (error) {
    if (!isPoison(error)) throw error;
    return runWith(source, handleOneByOne);
  }
};
