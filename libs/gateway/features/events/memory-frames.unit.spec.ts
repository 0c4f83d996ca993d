import { describe, expect, it } from '@jest/globals';
import type { MemoryEntry } from '@antiphon/contracts/memory';
import { changesOf } from './memory-frames.js';

/** Creates entries, oldest first, from `event predicate object`. The list is newest first. */
const given = (...texts: string[]): MemoryEntry[] =>
  texts
    .map((text, n) => {
      const [eventId = '', predicate = '', object = ''] = text.split(' ');
      return { memoryId: String(n), eventId, subject: 'user', predicate, object } as MemoryEntry;
    })
    .reverse();
const shown = (eventId: string, entries: MemoryEntry[]) =>
  changesOf(eventId, entries).map(({ change, entry }) => `${change} ${entry.object}`);

describe('changes of memory by an event', () => {
  it('are what was learned from it, each after the entry that it replaces', () => {
    const entries = given('e1 name Ada', 'e1 city Rome', 'e2 name Grace', 'e2 likes tea');
    expect(shown('e1', entries)).toEqual(['learned Ada', 'learned Rome']);
    expect(shown('e2', entries)).toEqual(['superseded Ada', 'learned Grace', 'learned tea']);
    expect(shown('e3', entries)).toEqual([]);
  });

  it('name both replacements of a topic that one message changes twice', () =>
    expect(shown('e2', given('e1 name Ada', 'e2 name Grace', 'e2 name Mary'))).toEqual([
      ...['superseded Ada', 'learned Grace', 'superseded Grace', 'learned Mary'],
    ]));
});
