import type { Fact } from '@antiphon/contracts/memory';
import { extractStatements } from './extract-statements.js';

/** Returns a fact's identity: at most one fact of a subject and predicate is in force. */
export const topicOf = ({ subject, predicate }: Pick<Fact, 'subject' | 'predicate'>): string =>
  JSON.stringify([subject, predicate]);

export const isActive = ({ supersededAt }: Pick<Fact, 'supersededAt'>): boolean => supersededAt === null;

/** Makes the UUID of the nth fact of an event, the same in every rebuild. */
export type FactIds = (sourceEventId: string, n: number) => string;

/** A fact that a session started with. */
export type Inherited = Omit<Fact, 'factId' | 'supersededAt'>;

/** A user's message (`TurnRequested`), or the facts that a fork inherits. */
export interface Said {
  readonly eventId: string;
  readonly text: string;
  /** ISO 8601. */
  readonly at: string;
  /** Facts of the original session at the fork's position. */
  readonly inherited?: readonly Inherited[];
}

const sameObject = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

/**
 * Returns the facts after a message, oldest first. A statement about a known subject and predicate
 * supersedes the fact in force, which stays in the list. A repeated statement changes nothing.
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
    const { subject, predicate } = statement;
    const active = next.find(
      (fact) => isActive(fact) && fact.predicate === predicate && fact.subject === subject,
    );
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
