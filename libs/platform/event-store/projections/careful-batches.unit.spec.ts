import { describe, expect, it } from '@jest/globals';
import { createTrialLane } from '@antiphon/kernel';
import { createMemoryStarts } from '@antiphon/testing';
import type { MemoryStarts } from '@antiphon/testing';
import { CarefulBatches } from './careful-batches.js';
import type { ProjectionSnapshot } from './projection-snapshot.js';

const CHECKPOINT = 7;
const snapshot = {
  ...{ position: CHECKPOINT, upTo: 9 },
  events: [{ position: 8 }, { position: 9 }],
} as unknown as ProjectionSnapshot;

const never = (): Promise<never> => new Promise(() => undefined);
const refuse = (): Promise<never> => Promise.reject(new Error('not expected'));

/** Starts a process that works on the first event. Returns whether it applies it alone. */
const begin = async (starts: MemoryStarts, apply = never) => {
  const batches = new CarefulBatches(starts, 'spec', createTrialLane());
  await batches.begin(CHECKPOINT);
  const isCareful = batches.isCareful(snapshot);
  const parked: number[] = [];
  const work = isCareful
    ? batches.applyFirst(snapshot, apply, async (_, { position }) => {
        parked.push(position);
        return 'caught_up';
      })
    : null;
  work?.catch(() => undefined);
  // The counts are in memory, so the work has begun after some turns of the event loop.
  await new Promise((resolve) => setImmediate(resolve));
  return { batches, isCareful, parked, work };
};

describe('a batch that is applied again', () => {
  it('is not careful after processes that stopped in order', async () => {
    const starts = createMemoryStarts();
    for (let stops = 0; stops < 4; stops++) {
      const { batches, isCareful } = await begin(starts);
      expect(isCareful).toBe(false);
      await batches.release();
    }
    expect([...starts.all]).toEqual([]);
  });

  it('parks its event after three lost processes, however many stops are between them', async () => {
    const starts = createMemoryStarts();
    for (const how of ['stop', 'kill', 'stop', 'kill', 'stop', 'kill'] as const) {
      const { batches, parked } = await begin(starts);
      expect(parked).toEqual([]);
      if (how === 'stop') await batches.release();
    }
    expect((await begin(starts)).parked).toEqual([8]);
  });

  it('parks no event that lost one process, although the projection was started many times', async () => {
    const starts = createMemoryStarts();
    for (let kills = 0; kills < 5; kills++) await starts.begin('projection', `spec@${CHECKPOINT}`);
    await starts.begin('projection-event', `spec@${CHECKPOINT + 1}`);
    const { isCareful, parked } = await begin(starts);
    expect([isCareful, parked]).toEqual([true, []]);
  });

  it('does not count a failure of a process that lives', async () => {
    const starts = createMemoryStarts();
    for (let kills = 0; kills < 2; kills++) await starts.begin('projection', `spec@${CHECKPOINT}`);
    const { batches, work } = await begin(starts, () => Promise.reject(new Error('no database')));
    await expect(work).rejects.toThrow('no database');
    await expect(batches.applyFirst(snapshot, async () => 'behind', refuse)).resolves.toBe('behind');
  });
});
