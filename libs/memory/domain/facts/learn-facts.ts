import type { Fact } from '@antiphon/contracts/memory';
import { extractStatements } from './extract-statements.js';
import { isActive, topicOf } from './fact.js';
import type { FactIds } from './fact.js';

/** A fact that a session was begun with. */
export type Inherited = Omit<Fact, 'factId' | 'supersededAt'>;

/** Something that a user said: a `TurnRequested` as memory sees it; or what a fork takes along. */
export interface Said {
  readonly eventId: string;
  readonly text: string;
  /** ISO 8601. */
  readonly at: string;
  /** Of a fork: what was believed when it was cut. */
  readonly inherited?: readonly Inherited[];
}

const sameObject = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

/**
 * The facts after something was said, oldest first. A statement about a known subject and predicate supersedes the
 * fact in force, which stays in the list; one that says the same again changes nothing.
 */
export const learnFacts = (
  facts: readonly Fact[],
  { eventId, text, at, inherited = [] }: Said,
  factId: FactIds,
): readonly Fact[] => {
  let next = [
    ...facts,
    ...inherited.map((fact, n) => ({ ...fact, factId: factId(eventId, n), supersededAt: null })),
  ];
  for (const [n, statement] of extractStatements(text).entries()) {
    const topic = topicOf(statement);
    const active = next.find((fact) => isActive(fact) && topicOf(fact) === topic);
    if (active !== undefined && sameObject(active.object, statement.object)) continue;
    const learned: Fact = {
      ...statement,
      factId: factId(eventId, n),
      learnedAt: at,
      supersededAt: null,
      sourceEventId: eventId,
    };
    next = [...next.map((fact) => (fact === active ? { ...fact, supersededAt: at } : fact)), learned];
  }
  return next;
};
