import type { MediaType } from '@antiphon/contracts/agent';

/** Format of an image, and its size in pixels. */
export interface ImageHeader {
  readonly mediaType: MediaType;
  readonly width: number;
  readonly height: number;
}

/** Maximum number of segments of a JPEG before its frame. */
const MAX_SEGMENTS = 2_000;

const textAt = (bytes: Uint8Array, from: number, length: number): string =>
  String.fromCharCode(...bytes.subarray(from, from + length));

const viewOf = (bytes: Uint8Array): DataView =>
  new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

type Size = Pick<ImageHeader, 'width' | 'height'>;

const pngSize = (bytes: Uint8Array): Size | null => {
  if (bytes.length < 33 || textAt(bytes, 12, 4) !== 'IHDR') return null;
  const view = viewOf(bytes);
  return view.getUint32(8) === 13 ? { width: view.getUint32(16), height: view.getUint32(20) } : null;
};

const gifSize = (bytes: Uint8Array): Size | null => {
  if (bytes.length < 13) return null;
  const view = viewOf(bytes);
  return { width: view.getUint16(6, true), height: view.getUint16(8, true) };
};

const webpSize = (bytes: Uint8Array): Size | null => {
  if (bytes.length < 30) return null;
  const view = viewOf(bytes);
  switch (textAt(bytes, 12, 4)) {
    case 'VP8 ':
      if (view.getUint8(23) !== 0x9d || view.getUint16(24) !== 0x01_2a) return null;
      return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
    case 'VP8L': {
      if (view.getUint8(20) !== 0x2f) return null;
      const bits = view.getUint32(21, true);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case 'VP8X': {
      const side = (at: number): number => view.getUint16(at, true) + (view.getUint8(at + 2) << 16) + 1;
      return { width: side(24), height: side(27) };
    }
    default:
      return null;
  }
};

/** Markers of frames, which hold the size. C4, C8 and CC are of tables and extensions. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;

const jpegSize = (bytes: Uint8Array): Size | null => {
  const view = viewOf(bytes);
  let at = 2;
  for (let segments = 0; segments < MAX_SEGMENTS && at + 9 < bytes.length; segments++) {
    if (view.getUint8(at) !== 0xff) return null;
    const marker = view.getUint8(at + 1);
    if (marker === 0xff) {
      // A byte of fill before a marker.
      at += 1;
      continue;
    }
    const length = view.getUint16(at + 2);
    if (length < 2) return null;
    if (isFrame(marker)) return { height: view.getUint16(at + 5), width: view.getUint16(at + 7) };
    at += 2 + length;
  }
  return null;
};

interface Format {
  readonly mediaType: MediaType;
  readonly begins: (bytes: Uint8Array) => boolean;
  readonly sizeOf: (bytes: Uint8Array) => Size | null;
}

const FORMATS: readonly Format[] = [
  {
    mediaType: 'image/png',
    begins: (bytes) => textAt(bytes, 0, 8) === '\u0089PNG\r\n\u001a\n',
    sizeOf: pngSize,
  },
  {
    mediaType: 'image/jpeg',
    begins: (bytes) => textAt(bytes, 0, 3) === '\u00ff\u00d8\u00ff',
    sizeOf: jpegSize,
  },
  { mediaType: 'image/gif', begins: (bytes) => /^GIF8[79]a$/.test(textAt(bytes, 0, 6)), sizeOf: gifSize },
  {
    mediaType: 'image/webp',
    begins: (bytes) => textAt(bytes, 0, 4) === 'RIFF' && textAt(bytes, 8, 4) === 'WEBP',
    sizeOf: webpSize,
  },
];

/** Returns the format that the first bytes of an image name; null for other bytes. */
export const imageTypeOf = (bytes: Uint8Array): MediaType | null =>
  FORMATS.find(({ begins }) => begins(bytes))?.mediaType ?? null;

/** Bytes at the beginning of a file among which the mark of a PDF is. */
const PDF_MARK_BYTES = 1_024;

export const isPdf = (bytes: Uint8Array): boolean => {
  const start = Math.min(bytes.length, PDF_MARK_BYTES);
  for (let at = 0; at + 5 <= start; at++)
    if (bytes[at] === 0x25 && textAt(bytes, at, 5) === '%PDF-') return true;
  return false;
};

/** Returns true for the first bytes of an archive, such as an office file. */
export const isZip = (bytes: Uint8Array): boolean => textAt(bytes, 0, 4) === 'PK\u0003\u0004';

/** Returns true for the first bytes of the container of older, and of encrypted, office files. */
export const isOldOffice = (bytes: Uint8Array): boolean =>
  textAt(bytes, 0, 8) === '\u00d0\u00cf\u0011\u00e0\u00a1\u00b1\u001a\u00e1';

/**
 * Reads the size of an image from its header. It decompresses nothing, and reads no byte beyond the
 * given ones. Returns null for bytes without the header of their format, or without pixels.
 */
export const readImageHeader = (bytes: Uint8Array): ImageHeader | null => {
  const format = FORMATS.find(({ begins }) => begins(bytes));
  const size = format?.sizeOf(bytes);
  if (!format || !size || size.width === 0 || size.height === 0) return null;
  return { mediaType: format.mediaType, ...size };
};
