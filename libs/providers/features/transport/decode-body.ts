import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw, constants } from 'node:zlib';
import { createZstdDecompress } from 'node:zlib';
import type { Transform } from 'node:stream';

export interface BodyEvents {
  readonly onData: (chunk: Buffer) => void;
  readonly onEnd: () => void;
  readonly onError: (error: Error) => void;
}

/** Decodes the body of a response. A part that breaks off is decoded as far as it arrived. */
export interface BodyDecoder {
  write(chunk: Buffer): void;
  end(): void;
  destroy(): void;
}

const ZLIB = { finishFlush: constants.Z_SYNC_FLUSH };
const isZlib = (first: number): boolean => (first & 0x0f) === 0x08;

/** Decoders by content encoding. Servers send `deflate` with and without a header. */
const DECODERS: Readonly<Record<string, (first: number) => Transform>> = {
  gzip: () => createGunzip(ZLIB),
  'x-gzip': () => createGunzip(ZLIB),
  deflate: (first) => (isZlib(first) ? createInflate(ZLIB) : createInflateRaw(ZLIB)),
  br: () => createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH }),
  zstd: () => createZstdDecompress({ finishFlush: constants.ZSTD_e_flush }),
};

/** Returns the content encodings of a response, the outermost last, without `identity`. */
const encodingsOf = (header: string): string[] =>
  header
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity');

/**
 * Creates the decoder of a content encoding, null where none is needed. Returns `unknown` for an
 * encoding that has no decoder, and for several of them. The decoder expands its input piece by
 * piece: a receiver that stops at its limit bounds the memory.
 */
export const createBodyDecoder = (header: string, events: BodyEvents): BodyDecoder | null | 'unknown' => {
  const [encoding, ...more] = encodingsOf(header);
  if (encoding === undefined) return null;
  const create = Object.hasOwn(DECODERS, encoding) ? DECODERS[encoding] : undefined;
  if (create === undefined || more.length > 0) return 'unknown';
  let stream: Transform | null = null;
  const open = (first: number): Transform =>
    create(first).on('data', events.onData).once('end', events.onEnd).once('error', events.onError);
  return {
    write: (chunk) => {
      if (chunk.length > 0) (stream ??= open(chunk[0] ?? 0)).write(chunk);
    },
    // A response without a body, such as an error's, has nothing to decode.
    end: () => (stream === null ? events.onEnd() : void stream.end()),
    destroy: () => void stream?.off('data', events.onData).destroy(),
  };
};
