/** What a module breaks; `reason` is one sentence that an operator can act on. */
export type GateCode =
  | 'NOT_WASM'
  | 'BAD_VERSION'
  | 'TOO_LARGE'
  | 'MALFORMED'
  | 'UNSUPPORTED'
  | 'IMPORT_NOT_GRANTED'
  | 'MEMORY_LIMIT'
  | 'TABLE_LIMIT'
  | 'EXPORT_MISSING';

/** How the gate's helpers leave: never an exception across the gate's own boundary. */
export class GateRefusal extends Error {
  readonly code: GateCode;
  constructor(code: GateCode, reason: string) {
    super(reason);
    this.code = code;
  }
}

export const refuse = (code: GateCode, reason: string): never => {
  throw new GateRefusal(code, reason);
};

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const MAX_NAME_BYTES = 1_000;
const MAX_U32 = 0xffff_ffff;
/** Functions, types or imports: ten times what a large plug-in has, and read in a few milliseconds. */
const MAX_ENTRIES = 100_000;

/** Reads WebAssembly's binary primitives between two offsets; each read checks what is left before it trusts a length. */
export interface ByteReader {
  readonly offset: () => number;
  readonly atEnd: () => boolean;
  readonly byte: () => number;
  /** LEB128, at most 5 bytes and 32 bits. */
  readonly u32: () => number;
  /** LEB128 of any sign and at most 10 bytes, skipped unread. */
  readonly skipLeb: () => void;
  /** A vector's length; refused over 100,000, or when even one byte an entry could not fit. */
  readonly count: () => number;
  readonly name: () => string;
  /** A reader of the next `length` bytes, which this one steps over. */
  readonly slice: (length: number) => ByteReader;
}

export const createByteReader = (bytes: Uint8Array, start = 0, end = bytes.length): ByteReader => {
  let at = start;
  const malformed = (what: string): never => refuse('MALFORMED', `${what} at byte ${at}`);
  const take = (length: number): number => {
    if (length > end - at) malformed(`a length of ${length} bytes runs past the end`);
    const from = at;
    at += length;
    return from;
  };
  const byte = (): number => bytes[take(1)] ?? 0;
  const u32 = (): number => {
    let value = 0;
    for (let i = 0; i < 5; i++) {
      const b = byte();
      value += (b & 0x7f) * 2 ** (7 * i);
      if (b < 0x80) return value <= MAX_U32 ? value : malformed('a number over 32 bits');
    }
    return malformed('a number of over 5 bytes');
  };
  const skipLeb = (): void => {
    for (let i = 0; i < 10; i++) if (byte() < 0x80) return;
    malformed('a number of over 10 bytes');
  };
  const count = (): number => {
    const n = u32();
    if (n > MAX_ENTRIES) refuse('TOO_LARGE', `a section of ${n} entries, the limit is ${MAX_ENTRIES}`);
    return n <= end - at ? n : malformed(`a vector of ${n} entries in ${end - at} bytes`);
  };
  const name = (): string => {
    const length = u32();
    if (length > MAX_NAME_BYTES) malformed(`a name of ${length} bytes`);
    const from = take(length);
    try {
      return utf8.decode(bytes.subarray(from, from + length));
    } catch {
      return malformed('a name that is not UTF-8');
    }
  };
  const slice = (length: number): ByteReader => {
    const from = take(length);
    return createByteReader(bytes, from, from + length);
  };
  return { offset: () => at, atEnd: () => at === end, byte, u32, skipLeb, count, name, slice };
};
