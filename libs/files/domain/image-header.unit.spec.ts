import { describe, expect, it } from '@jest/globals';
import { pngOf } from '@antiphon/testing/sample-files';
import { imageTypeOf, isPdf, readImageHeader } from './image-header.js';

const bytesOf = (...parts: readonly (string | readonly number[])[]): Uint8Array =>
  Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.from(part))),
  );

const jpeg = (...segments: readonly (readonly number[])[]): Uint8Array =>
  bytesOf([0xff, 0xd8], ...segments, new Array(32).fill(0));
const FRAME = [0xff, 0xc0, 0, 17, 8, 0x01, 0xe0, 0x02, 0x80];

const IMAGES: readonly (readonly [string, Uint8Array, object])[] = [
  ['a PNG', pngOf(640, 480), { mediaType: 'image/png', width: 640, height: 480 }],
  [
    'a GIF',
    bytesOf('GIF89a', [0x40, 0x01, 0xf0, 0x00, 0, 0, 0]),
    { mediaType: 'image/gif', width: 320, height: 240 },
  ],
  [
    'a JPEG behind other segments and fill',
    jpeg([0xff, 0xe0, 0, 4, 1, 2], [0xff, 0xff, 0xc4, 0, 3, 9], FRAME),
    { mediaType: 'image/jpeg', width: 640, height: 480 },
  ],
  [
    'a lossy WebP',
    bytesOf('RIFF', [0, 0, 0, 0], 'WEBPVP8 ', new Array(7).fill(0), [0x9d, 0x01, 0x2a, 0x80, 2, 0xe0, 1]),
    { mediaType: 'image/webp', width: 640, height: 480 },
  ],
  [
    'a lossless WebP',
    bytesOf('RIFF', [0, 0, 0, 0], 'WEBPVP8L', [0, 0, 0, 0, 0x2f, 0x7f, 0xc2, 0x77, 0], new Array(8).fill(0)),
    { mediaType: 'image/webp', width: 640, height: 480 },
  ],
  [
    'an extended WebP',
    bytesOf('RIFF', [0, 0, 0, 0], 'WEBPVP8X', new Array(8).fill(0), [0x7f, 2, 0, 0xdf, 1, 0]),
    { mediaType: 'image/webp', width: 640, height: 480 },
  ],
];

describe('the header of an image', () => {
  it.each(IMAGES)('names the size of %s', (_what, bytes, header) => {
    expect(readImageHeader(bytes)).toEqual(header);
  });

  it.each(IMAGES)('of %s is not read beyond the bytes that there are', (_what, bytes) => {
    for (let length = 0; length < bytes.length; length++)
      expect(() => readImageHeader(bytes.subarray(0, length))).not.toThrow();
    expect(readImageHeader(bytes.subarray(0, 8))).toBeNull();
  });

  it.each([
    ['no pixels', pngOf(0, 480)],
    ['another first chunk', bytesOf('\u0089PNG\r\n\u001a\n', [0, 0, 0, 13], 'IDAT', new Array(40).fill(1))],
    ['a segment that is shorter than itself', jpeg([0xff, 0xe0, 0, 1])],
    ['segments without a frame', jpeg(...Array.from({ length: 3_000 }, () => [0xff, 0xe0, 0, 2]))],
    ['a WebP of an unknown kind', bytesOf('RIFF', [0, 0, 0, 0], 'WEBPABCD', new Array(40).fill(1))],
    ['an SVG', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')],
  ])('is null with %s', (_what, bytes) => {
    expect(readImageHeader(bytes)).toBeNull();
  });

  it('is found by the first bytes, and not by a name', () => {
    expect(imageTypeOf(pngOf(1, 1))).toBe('image/png');
    expect(imageTypeOf(Buffer.from('PNG'))).toBeNull();
    expect(isPdf(Buffer.from('junk before\n%PDF-1.7\n'))).toBe(true);
    expect(isPdf(Buffer.from(`${' '.repeat(2_000)}%PDF-1.7`))).toBe(false);
  });
});
