import { createHash } from 'node:crypto';

/** Bytes that another process hands over in parts. */
interface Whole {
  readonly digest: string;
  readonly size: number;
}

interface PartSource {
  readonly readPart: (offset: number) => Promise<Buffer>;
  /** Returns the error for bytes that are not the promised ones. */
  readonly lost: (why: string) => Error;
}

/** Fetches bytes in parts, and checks their size and SHA-256. */
export const fetchParts = async (
  { digest, size }: Whole,
  { readPart, lost }: PartSource,
  signal: AbortSignal,
): Promise<Buffer> => {
  const bytes = Buffer.allocUnsafe(size);
  const hash = createHash('sha256');
  for (let offset = 0; offset < size;) {
    signal.throwIfAborted();
    const part = await readPart(offset);
    if (part.length === 0 || offset + part.length > size) throw lost('its size differs');
    part.copy(bytes, offset);
    hash.update(part);
    offset += part.length;
  }
  if (hash.digest('hex') !== digest) throw lost('its digest differs');
  return bytes;
};
