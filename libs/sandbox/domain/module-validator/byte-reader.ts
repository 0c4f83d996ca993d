/** Rule that a rejected module breaks. */
export type RejectionCode =
  | 'NOT_WASM'
  | 'BAD_VERSION'
  | 'TOO_LARGE'
  | 'MALFORMED'
  | 'UNSUPPORTED'
  | 'IMPORT_NOT_GRANTED'
  | 'MEMORY_LIMIT'
  | 'TABLE_LIMIT'
  | 'EXPORT_MISSING';

/** Thrown by the validator's helpers only; `validateModule` turns it into a verdict. */
export class ModuleRejected extends Error {
  readonly code: RejectionCode;
  constructor(code: RejectionCode, reason: string) {
    super(reason);
    this.code = code;
  }
}

export const rejectModule = (code: RejectionCode, reason: string): never => {
  throw new ModuleRejected(code, reason);
};

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const MAX_NAME_BYTES = 1_000;
const MAX_U32 = 0xffff_ffff;
/** Functions, types or imports: ten times as many as a large plug-in has, read in milliseconds. */
const MAX_ENTRIES = 100_000;

/**
 * Reads WebAssembly's binary primitives between two offsets. Each read checks the remaining bytes
 * before it uses a length.
 */
export class ByteReader {
  private at: number;
  private readonly bytes: Uint8Array;
  private readonly end: number;

  constructor(bytes: Uint8Array, start = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = start;
    this.end = end;
  }

  get offset(): number {
    return this.at;
  }

  get isAtEnd(): boolean {
    return this.at === this.end;
  }

  byte(): number {
    return this.bytes[this.advance(1)] ?? 0;
  }

  /** Reads a LEB128 number of at most 5 bytes and 32 bits. */
  u32(): number {
    let value = 0;
    for (let i = 0; i < 5; i++) {
      const byte = this.byte();
      value += (byte & 0x7f) * 2 ** (7 * i);
      if (byte < 0x80) return value <= MAX_U32 ? value : this.rejectMalformed('a number over 32 bits');
    }
    return this.rejectMalformed('a number of over 5 bytes');
  }

  /** Skips a LEB128 number of any sign and at most 10 bytes. */
  skipLeb(): void {
    for (let i = 0; i < 10; i++) if (this.byte() < 0x80) return;
    this.rejectMalformed('a number of over 10 bytes');
  }

  /** Reads a vector's length. Rejects over 100,000 entries, or more entries than bytes are left. */
  count(): number {
    const entries = this.u32();
    if (entries > MAX_ENTRIES)
      rejectModule('TOO_LARGE', `a section of ${entries} entries, the limit is ${MAX_ENTRIES}`);
    const left = this.end - this.at;
    return entries <= left
      ? entries
      : this.rejectMalformed(`a vector of ${entries} entries in ${left} bytes`);
  }

  name(): string {
    const length = this.u32();
    if (length > MAX_NAME_BYTES) this.rejectMalformed(`a name of ${length} bytes`);
    const from = this.advance(length);
    try {
      return utf8.decode(this.bytes.subarray(from, from + length));
    } catch {
      return this.rejectMalformed('a name that is not UTF-8');
    }
  }

  /** Returns a reader of the next `length` bytes and skips them. */
  slice(length: number): ByteReader {
    const from = this.advance(length);
    return new ByteReader(this.bytes, from, from + length);
  }

  /** Skips `length` bytes and returns the offset of the first. */
  private advance(length: number): number {
    if (length > this.end - this.at) this.rejectMalformed(`a length of ${length} bytes runs past the end`);
    const from = this.at;
    this.at += length;
    return from;
  }

  private rejectMalformed(problem: string): never {
    return rejectModule('MALFORMED', `${problem} at byte ${this.at}`);
  }
}
