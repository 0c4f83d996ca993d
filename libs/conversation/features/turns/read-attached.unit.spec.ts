import { describe, expect, it } from '@jest/globals';
import { notFound, transient } from '@antiphon/kernel';
import { FileTextReader } from './read-attached.js';

const MIB = 1024 * 1024;

/** Stores bytes by their digests, and counts what is read at the same time. */
const createBlobs = (stored: Record<string, Uint8Array | Error>) => {
  const seen = { now: 0, most: 0, bytes: 0 };
  const readPart = async (_: string, digest: string, from: number, length: number): Promise<Uint8Array> => {
    seen.most = Math.max(seen.most, ++seen.now);
    await new Promise((resolve) => setImmediate(resolve));
    seen.now--;
    const found = stored[digest] ?? notFound('FILE.NO_BYTES', 'not stored');
    if (found instanceof Error) throw found;
    const part = found.slice(from, from + length);
    seen.bytes += part.length;
    return part;
  };
  const read = (_: string, digest: string): Promise<Uint8Array> => readPart(_, digest, 0, Infinity);
  return { seen, blobs: { readPart, read } };
};
const fileOf = (digest: string, size: number) => ({ path: `${digest}.md`, digest, size });

describe('the texts of attached files', () => {
  it('are read one after another, at most 4 MiB together', async () => {
    const large = new Uint8Array(MIB).fill(0x61);
    const names = Array.from({ length: 40 }, (_, n) => `f${n}`);
    const { seen, blobs } = createBlobs(Object.fromEntries(names.map((name) => [name, large])));
    const texts = await new FileTextReader(blobs).read(
      'default',
      names.map((name) => fileOf(name, large.length)),
    );
    expect(seen.most).toBe(1);
    expect(seen.bytes).toBeLessThanOrEqual(4 * MIB);
    expect(texts.every(({ isPart, text }) => isPart && text?.startsWith('aaa'))).toBe(true);
  });

  it('end before a character that the bound splits', async () => {
    const euros = new TextEncoder().encode('€'.repeat(6 * MIB));
    const { blobs } = createBlobs({ euros });
    const [read] = await new FileTextReader(blobs).read('default', [fileOf('euros', euros.length)]);
    expect(read?.text).toBe('€'.repeat(Math.floor((4 * MIB) / 3)));
  });

  it('are whole up to the bound, and null where they are not text', async () => {
    const { blobs } = createBlobs({ a: Buffer.from('low tide'), b: Buffer.from([0xff, 0xfe]) });
    const texts = await new FileTextReader(blobs).read('default', [fileOf('a', 8), fileOf('b', 2)]);
    expect(texts.map(({ text, isPart }) => [text, isPart])).toEqual([
      ['low tide', false],
      [null, false],
    ]);
  });

  it('name erased and lost bytes, and reject for a failed read', async () => {
    const { blobs } = createBlobs({
      gone: notFound('FILE.ERASED', 'erased'),
      down: transient('DB.DOWN', 'no'),
    });
    const texts = await new FileTextReader(blobs).read('default', [fileOf('gone', 3), fileOf('lost', 3)]);
    expect(texts.map(({ text }) => text)).toEqual([
      expect.stringContaining('was erased'),
      expect.stringContaining('is lost'),
    ]);
    await expect(new FileTextReader(blobs).read('default', [fileOf('down', 3)])).rejects.toMatchObject({
      code: 'DB.DOWN',
    });
  });
});
