import type { Fact } from '@antiphon/contracts/memory';

/** A fact is known by what it is about: of one subject and predicate at most one is in force. */
export const topicOf = ({ subject, predicate }: Pick<Fact, 'subject' | 'predicate'>): string =>
  JSON.stringify([subject, predicate]);

export const isActive = ({ supersededAt }: Pick<Fact, 'supersededAt'>): boolean => supersededAt === null;

/** The UUID of the nth fact of an event: the same event gives the same ids in every rebuild. */
export type FactIds = (sourceEventId: string, n: number) => string;
