import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createReplyDecoder, encodeRequest } from './frame-codec.js';
import type { ReplyFrame } from './frame-codec.js';

/** Requests and replies have one form on the wire; only their JSON differs. */
const encode = (json: object, body: Uint8Array): Buffer =>
  encodeRequest(json as Parameters<typeof encodeRequest>[0], body);

const decodeAll = (chunks: readonly Buffer[]): ReplyFrame[] => {
  const frames: ReplyFrame[] = [];
  const decode = createReplyDecoder((frame) => frames.push(frame));
  chunks.forEach(decode);
  return frames;
};

describe('frames of a cell', () => {
  it('arrive whole, however the pipe cuts them', () =>
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
    ['what is no JSON', [1, 0, 0, 0, 0, 0, 0, 0, 0x7b]],
  ])('are refused with %s, before anything is kept for it', (_, bytes) =>
    expect(() => decodeAll([Buffer.from(bytes)])).toThrow(),
  );
});
