import type { SessionEventOf } from '@antiphon/contracts/agent';
import type { Fact } from '@antiphon/contracts/memory';
import type { RecordedEvent } from '@antiphon/event-store';
import { extractStatements, learnFacts } from '@antiphon/memory-domain';
import type { Said } from '@antiphon/memory-domain';
import { bug } from '@antiphon/kernel';
import type { PlacedFact } from './session-memory.events.js';
import { LEARNED_TYPES, factIds, sessionIdOf, toSaid, toStarted } from './session-memory.events.js';

/** A session or a session key within its workspace. */
export interface Scoped {
  readonly workspace: string;
  readonly id: string;
}
export const scopedId = ({ workspace, id }: Scoped): string => `${workspace} ${id}`;

/** A message with its session and position. */
export interface Learning {
  readonly session: Scoped;
  readonly position: number;
  readonly said: Said;
}

/** Changes of memory by a batch of the log, before any row is read. */
export interface BatchPlan {
  readonly started: ReadonlyMap<
    string,
    { readonly session: Scoped; readonly data: SessionEventOf<'SessionStarted'>['data'] }
  >;
  readonly versions: ReadonlyMap<string, { readonly session: Scoped; readonly version: number }>;
  /** Messages that contain a statement. */
  readonly learnings: readonly Learning[];
}

/**
 * Plans a batch, in order of position. Most messages contain no statement, so most batches read no
 * rows.
 */
export const planBatch = (events: readonly RecordedEvent[]): BatchPlan => {
  const started = new Map<string, { session: Scoped; data: SessionEventOf<'SessionStarted'>['data'] }>();
  const versions = new Map<string, { session: Scoped; version: number }>();
  const learnings: Learning[] = [];
  for (const event of events) {
    const id = sessionIdOf(event.streamId);
    if (id === null) continue;
    const session = { workspace: event.workspace, id };
    versions.set(scopedId(session), { session, version: event.streamVersion });
    if (event.type === 'SessionStarted') started.set(scopedId(session), { session, data: toStarted(event) });
    if (!LEARNED_TYPES.includes(event.type)) continue;
    const said = toSaid(event);
    const hasStatements = (said.inherited?.length ?? 0) > 0 || extractStatements(said.text).length > 0;
    if (hasStatements) learnings.push({ session, position: event.position, said });
  }
  return { started, versions, learnings };
};

export interface FactChanges {
  readonly learned: readonly (PlacedFact & { readonly key: Scoped })[];
  /** Facts of existing rows. */
  readonly superseded: readonly {
    readonly workspace: string;
    readonly factId: string;
    readonly at: string;
  }[];
}

/**
 * Folds messages onto the facts in force of each key. `keyOf` maps a session's scoped id to its
 * key, `active` a key's scoped id to its facts.
 */
export const foldLearnings = (
  learnings: readonly Learning[],
  keyOf: ReadonlyMap<string, Scoped>,
  active: ReadonlyMap<string, readonly Fact[]>,
): FactChanges => {
  const facts = new Map(active);
  const learned: (PlacedFact & { key: Scoped })[] = [];
  for (const { session, position, said } of learnings) {
    const key = keyOf.get(scopedId(session));
    if (key === undefined)
      throw bug('MEMORY.UNKNOWN_SESSION', `the session ${session.id} has a message before its start`);
    const before = facts.get(scopedId(key)) ?? [];
    const after = learnFacts(before, said, factIds);
    after.slice(before.length).forEach((fact, ordinal) => learned.push({ key, fact, position, ordinal }));
    facts.set(scopedId(key), after);
  }
  return settle(learned, facts, active);
};

/** Combines the changes: a fact learned and superseded in one batch is written once. */
const settle = (
  learned: readonly (PlacedFact & { key: Scoped })[],
  facts: ReadonlyMap<string, readonly Fact[]>,
  active: ReadonlyMap<string, readonly Fact[]>,
): FactChanges => {
  const now = new Map([...facts.values()].flat().map((fact) => [fact.factId, fact]));
  const superseded = [...active].flatMap(([key, before]) => {
    const workspace = key.slice(0, key.indexOf(' '));
    return before.flatMap(({ factId }) => {
      const at = now.get(factId)?.supersededAt ?? null;
      return at === null ? [] : [{ workspace, factId, at }];
    });
  });
  return {
    learned: learned.map((placed) => ({ ...placed, fact: now.get(placed.fact.factId) ?? placed.fact })),
    superseded,
  };
};
