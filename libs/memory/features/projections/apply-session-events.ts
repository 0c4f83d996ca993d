import type pg from 'pg';
import type { RecordedEvent } from '@antiphon/event-store';
import { deleteFacts, readActive, readKeys, writeFacts, writeSessions } from './memory-rows.js';
import { foldLearnings, planBatch, scopedId } from './plan-batch.js';
import type { FactChanges, Learning, Scoped } from './plan-batch.js';
import { readLateKeys, readSaid } from './refold-keys.js';

const distinct = (all: Iterable<Scoped>): readonly Scoped[] => [
  ...new Map([...all].map((one) => [scopedId(one), one])).values(),
];

type KeyOf = ReadonlyMap<string, Scoped>;

/** Facts follow the log's order. What comes late (a stream that was parked) makes its key fold anew. */
const refold = async (client: pg.ClientBase, late: readonly Scoped[], keyOf: KeyOf): Promise<FactChanges> => {
  const said = await readSaid(client, late);
  await deleteFacts(client, late);
  const sessions = said.map(({ session, key }) => [scopedId(session), key] as const);
  return foldLearnings(said, new Map([...keyOf, ...sessions]), new Map());
};

const learn = async (client: pg.ClientBase, learnings: readonly Learning[]): Promise<void> => {
  const keyOf = await readKeys(client, distinct(learnings.map(({ session }) => session)));
  const keys = distinct(keyOf.values());
  const late = await readLateKeys(client, keys, learnings, keyOf);
  if (late.length > 0) await writeFacts(client, await refold(client, late, keyOf));
  const lateIds = new Set(late.map(scopedId));
  const isLate = (key: Scoped | undefined): boolean => key !== undefined && lateIds.has(scopedId(key));
  const timely = learnings.filter(({ session }) => !isLate(keyOf.get(scopedId(session))));
  const active = await readActive(
    client,
    keys.filter((key) => !isLate(key)),
  );
  await writeFacts(client, foldLearnings(timely, keyOf, active));
};

/**
 * Brings memory's rows up to a batch of the log, in the caller's transaction, which also moves the checkpoint.
 * Events come in order of position and once each, except for a stream that was parked, whose rest comes late.
 */
export const applySessionEvents = async (
  client: pg.ClientBase,
  events: readonly RecordedEvent[],
): Promise<void> => {
  const plan = planBatch(events);
  await writeSessions(client, plan);
  if (plan.learnings.length > 0) await learn(client, plan.learnings);
};
