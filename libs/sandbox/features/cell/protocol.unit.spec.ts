import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ReplyDecoder, encodeRequest } from './protocol.js';
import type { ReplyFrame } from './protocol.js';

/** Encodes a reply like a request: their frames differ only in the JSON. */
const encode = (json: object, body: Uint8Array): Buffer =>
  encodeRequest(json as Parameters<typeof encodeRequest>[0], body);

const decodeAll = (chunks: readonly Buffer[]): ReplyFrame[] => {
  const frames: ReplyFrame[] = [];
  const decoder = new ReplyDecoder((frame) => frames.push(frame));
  for (const chunk of chunks) decoder.push(chunk);
  return frames;
};

describe('ReplyDecoder', () => {
  it('decodes frames from chunks of any size', () =>
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 2_000 }), { maxLength: 5 }),
        fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 1 }),
        (bodies, cuts) => {
          const wire = Buffer.concat(bodies.map((body, id) => encode({ type: 'refused', id }, body)));
          const chunks: Buffer[] = [];
          for (let at = 0, n = 0; at < wire.length; n++) {
            const size = cuts[n % cuts.length] ?? 1;
            chunks.push(wire.subarray(at, at + size));
            at += size;
          }
          const frames = decodeAll(chunks);
          expect(frames.map(({ reply }) => reply)).toEqual(bodies.map((_, id) => ({ type: 'refused', id })));
          expect(frames.map(({ body }) => [...body])).toEqual(bodies.map((body) => [...body]));
        },
      ),
    ));

  it.each([
    ['a JSON of 4 GiB', [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]],
    ['a body of over 1 MiB', [2, 0, 0, 0, 1, 0, 16, 0]],
    ['invalid JSON', [1, 0, 0, 0, 0, 0, 0, 0, 0x7b]],
  ])('throws on %s before it allocates memory', (_, bytes) =>
    expect(() => decodeAll([Buffer.from(bytes)])).toThrow(),
  );
});
