import { beforeAll, describe, expect, it } from '@jest/globals';
import { genesisHash, hashEvent, type RecordedEvent, verifyChain } from '@antiphon/event-store';
import { createMemoryEventStore } from '../testing/memory-event-store.js';
import { toStream } from '@antiphon/testing';

const VECTOR = {
  streamId: 'session-0',
  streamVersion: 1,
  eventId: '00000000-0000-4000-8000-000000000000',
  type: 'Noted',
  schemaVersion: 1,
  data: '{"a":1}',
  metadata: '{}',
};

describe('the hash of an event', () => {
  // Stored rows are immutable: a change of one of these hashes would break every existing log.
  it('equals the recorded vector', () => {
    expect(genesisHash('default').toString('hex')).toBe(
      '949a5056db12d5e61411ae10abbd1b92ed6c7516dcd9310ae852ee01dbbfdcd4',
    );
    expect(hashEvent(genesisHash('default'), VECTOR).toString('hex')).toBe(
      'b8eb74b93f6339a3dbaf5d3e7d4209579e8cf6a6d04b05edbe03920a58d0333f',
    );
  });

  it('depends on every field and on the workspace', () => {
    const others = [
      { ...VECTOR, streamId: 'session-1' },
      { ...VECTOR, streamVersion: 2 },
      { ...VECTOR, eventId: '00000000-0000-4000-8000-000000000001' },
      { ...VECTOR, type: 'Other' },
      { ...VECTOR, schemaVersion: 2 },
      { ...VECTOR, data: '{"a":2}' },
      { ...VECTOR, metadata: '{"a":1}' },
    ];
    const hashes = others.map((fields) => hashEvent(genesisHash('default'), fields).toString('hex'));
    const foreign = hashEvent(genesisHash('other'), VECTOR).toString('hex');
    expect(
      new Set([...hashes, foreign, hashEvent(genesisHash('default'), VECTOR).toString('hex')]).size,
    ).toBe(9);
  });
});

describe('verifyChain', () => {
  let events: RecordedEvent[];
  beforeAll(async () => {
    const store = createMemoryEventStore();
    await store.append({ workspace: 'w', streams: [toStream('session-1', 0, 5)] });
    events = await store.readStream('w', 'session-1');
  });
  const changed = (version: number, change: Partial<RecordedEvent>): RecordedEvent[] =>
    events.map((event) => (event.streamVersion === version ? { ...event, ...change } : event));

  it('accepts an intact chain and an empty one', () => {
    expect(verifyChain(events)).toEqual({ isIntact: true, version: 5, hash: events[4]!.hash });
    expect(verifyChain([])).toEqual({ isIntact: true, version: 0, hash: '' });
  });

  it.each<[string, Partial<RecordedEvent>]>([
    ['data', { data: { text: 'forged' } }],
    ['metadata', { metadata: { correlationId: 'x', service: 'agent' } }],
    ['type', { type: 'Forged' }],
    ['schema version', { schemaVersion: 2 }],
    ['event id', { eventId: '00000000-0000-4000-8000-000000000000' }],
    ['hash', { hash: '00'.repeat(32) }],
    ['category', { category: 'budget' }],
    ['stream', { streamId: 'session-2' }],
    ['workspace', { workspace: 'other' }],
  ])('names the event whose %s was changed', (_, change) => {
    expect(verifyChain(changed(3, change))).toMatchObject({ isIntact: false, event: { streamVersion: 3 } });
  });

  it('names the successor of a missing event, and the first of two swapped events', () => {
    expect(verifyChain(events.filter(({ streamVersion }) => streamVersion !== 2))).toMatchObject({
      isIntact: false,
      event: { streamVersion: 3 },
    });
    expect(verifyChain([events[1]!, events[0]!])).toMatchObject({
      isIntact: false,
      event: { streamVersion: 2 },
    });
  });

  it('names the successor of an event that was forged with a matching hash', () => {
    const second = events[1]!;
    const data = { text: 'forged' };
    const fields = { ...second, data: JSON.stringify(data), metadata: JSON.stringify(second.metadata) };
    const hash = hashEvent(Buffer.from(events[0]!.hash, 'hex'), fields).toString('hex');
    expect(verifyChain(changed(2, { data, hash }))).toMatchObject({
      isIntact: false,
      event: { streamVersion: 3 },
    });
  });

  it('starts in the middle from a given version and hash', () => {
    expect(verifyChain(events.slice(3), { version: 3, hash: events[2]!.hash })).toMatchObject({
      isIntact: true,
      version: 5,
    });
    expect(verifyChain(events.slice(3), { version: 3, hash: events[1]!.hash })).toMatchObject({
      isIntact: false,
    });
  });
});
