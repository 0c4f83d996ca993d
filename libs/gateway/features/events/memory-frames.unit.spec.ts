import { describe, expect, it } from '@jest/globals';
import type { MemoryEntry } from '@antiphon/contracts/memory';
import { changesOf, MAX_WAITING, MemoryReads } from './memory-frames.js';

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

describe('reads of memory', () => {
  const settle = () => new Promise((resolve) => setImmediate(resolve));

  it('run one after another, each within 30 s of its event', async () => {
    let now = 0;
    const reads = new MemoryReads(() => now);
    const seen: number[] = [];
    let release = (): void => undefined;
    reads.add(() => new Promise((resolve) => (release = resolve)));
    reads.add(async (withinMs) => void seen.push(withinMs));
    now = 10_000;
    reads.add(async (withinMs) => void seen.push(withinMs));
    await settle();
    expect(seen).toEqual([]);
    now = 30_000;
    release();
    await settle();
    // The second event waited for too long: its frames are left out.
    expect(seen).toEqual([10_000]);
  });

  it('leave out the events beyond the bound of those that wait, and continue after a failure', async () => {
    const reads = new MemoryReads(() => 0);
    let count = 0;
    let fail = (): void => undefined;
    reads.add(() => new Promise((_, reject) => (fail = () => reject(new Error('memory is out')))));
    await settle();
    for (let n = 1; n < MAX_WAITING + 50; n++) reads.add(async () => void count++);
    fail();
    await settle();
    expect(count).toBe(MAX_WAITING - 1);
    reads.add(async () => void count++);
    await settle();
    expect(count).toBe(MAX_WAITING);
  });
});
