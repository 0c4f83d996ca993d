import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type pg from 'pg';
import { createTestDatabase, type TestDatabase } from '@antiphon/testing';
import { BlobStore } from './blob-store.js';
import { createPool } from './pool.js';
import { rareTailOf } from './rare-tail.js';

const WORKSPACE = 'default';
const TEXTS = [
  'a needle is here',
  'eee\n\t  eee',
  'ärger über straße',
  'текст и ещё текст',
  '{"key": [1, 2]}',
  'aaa',
  'q',
];
const BODIES = [
  ...TEXTS,
  ...TEXTS.map((text) => `before ${text} after`),
  ...TEXTS.map((text) => text.slice(1)),
  ...TEXTS.map((text) => [...text].reverse().join('')),
  ...['', 'eeeeeeeeee eeeeeeeeee', 'needle', 'текст'],
];

let database: TestDatabase;
let pool: pg.Pool;
let blobs: BlobStore;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ url: database.urlFor('agent'), applicationName: 'spec', max: 2 });
  blobs = new BlobStore(pool);
  for (const body of [...BODIES, 'a zero \0 within']) await blobs.put(WORKSPACE, Buffer.from(body));
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const digestOf = (body: string): string => createHash('sha256').update(body).digest('hex');

describe('findContaining', () => {
  const parts = TEXTS.flatMap((text) => [
    text,
    text.slice(1),
    text.slice(-3),
    text.slice(2, 5),
    text.slice(0, 1),
  ]);
  it.each([...new Set(parts)])('finds exactly the bodies that contain %j', async (text) => {
    const found = await blobs.findContaining(WORKSPACE, BODIES.map(digestOf), Buffer.from(text));
    const expected = BODIES.filter((body) => body.includes(text)).map(digestOf);
    expect(new Set(found.keys())).toEqual(new Set(expected));
    expect(new Set(found.values())).toEqual(new Set(expected.length === 0 ? [] : ['text']));
  });

  it('returns a binary body for any text, and none for no digest or another workspace', async () => {
    const binary = digestOf('a zero \0 within');
    expect([...(await blobs.findContaining(WORKSPACE, [binary], Buffer.from('needle')))]).toEqual([
      [binary, 'binary'],
    ]);
    expect((await blobs.findContaining(WORKSPACE, [], Buffer.from('needle'))).size).toBe(0);
    const all = BODIES.map(digestOf);
    expect((await blobs.findContaining(randomUUID(), all, Buffer.from('needle'))).size).toBe(0);
  });

  it.each([
    ['the needle is', 'dle is'],
    ['zebra', 'zebra'],
    ['ab', 'ab'],
    ['eeez', 'eeez'],
    ['', ''],
  ])('compares %j first by its end %j', (text, tail) => {
    expect(Buffer.from(rareTailOf(Buffer.from(text))).toString()).toBe(tail);
  });
});
