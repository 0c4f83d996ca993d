import type pg from 'pg';
import type { RecordedEvent } from '@antiphon/event-store';
import { readActive, readKeys, writeFacts, writeSessions } from './memory-rows.js';
import { foldLearnings, planBatch, scopedId } from './plan-batch.js';
import type { Scoped } from './plan-batch.js';

const distinct = (all: Iterable<Scoped>): readonly Scoped[] => [
  ...new Map([...all].map((one) => [scopedId(one), one])).values(),
];

/**
 * Brings memory's rows up to a batch of the log, in the caller's transaction, which also moves the checkpoint.
 * Events come in order of position and once each.
 */
export const applySessionEvents = async (
  client: pg.ClientBase,
  events: readonly RecordedEvent[],
): Promise<void> => {
  const plan = planBatch(events);
  await writeSessions(client, plan);
  if (plan.learnings.length === 0) return;
  const keyOf = await readKeys(client, distinct(plan.learnings.map(({ session }) => session)));
  const active = await readActive(client, distinct(keyOf.values()));
  await writeFacts(client, foldLearnings(plan.learnings, keyOf, active));
};
