/** Maximum size of one block: an output, an error or a variable. */
export const MAX_BLOCK_BYTES = 1024 * 1024;
const MAX_MEMORY_BYTES = 8 * MAX_BLOCK_BYTES;
const MIN_MEMORY_BYTES = 64 * 1024;
/** Offset of a call's first block, which is its input. */
export const FIRST_BLOCK = 16; // 0 is Extism's "no block"
/** Free memory next to the input, before the memory has to grow. */
const SPARE_BYTES = 8 * 1024;

/** A limit that the plug-in exceeded. */
export interface Violation {
  readonly end: 'memory' | 'output' | 'denied' | 'exited';
  readonly message: string;
}
/** Records a violation and throws. */
export type Violate = (end: Violation['end'], message: string) => never;

/** Memory of most calls, cleared before each: a new one would be most of a small call's garbage. */
const smallMemory = new Uint8Array(MIN_MEMORY_BYTES);

const createMemory = (inputBytes: number): Uint8Array => {
  const needed = FIRST_BLOCK + inputBytes + SPARE_BYTES;
  return needed > MIN_MEMORY_BYTES ? new Uint8Array(needed) : smallMemory.fill(0);
};

/**
 * Blocks of bytes that a plug-in and its host exchange during one call, in bounded memory. An
 * offset out of bounds reads as 0 and is not written, as in Extism's kernel.
 */
export class BlockMemory {
  private readonly violate: Violate;
  private memory: Uint8Array;
  private view: DataView;
  /** Offset of the next block. */
  private top = FIRST_BLOCK;
  private readonly sizes = new Map<number, number>();
  private readonly order: number[] = [];

  // Node strips the types of this file when specs run it in a cell: no parameter properties.
  constructor(inputBytes: number, violate: Violate) {
    this.violate = violate;
    this.memory = createMemory(inputBytes);
    this.view = new DataView(this.memory.buffer);
  }

  alloc(size: bigint): bigint {
    const bytes = Number(BigInt.asUintN(64, size));
    if (bytes === 0) return 0n;
    if (bytes > MAX_BLOCK_BYTES)
      this.violate(
        'output',
        `a block of ${bytes} bytes, at most ${MAX_BLOCK_BYTES} may be handed to the host`,
      );
    const offset = this.top;
    this.grow(offset + bytes);
    this.top = (offset + bytes + 7) & ~7;
    this.sizes.set(offset, bytes);
    this.order.push(offset);
    return BigInt(offset);
  }

  /** Frees a block. Only space at the end is reused, as blocks are mostly freed in stack order. */
  free(offset: bigint): void {
    const { sizes, order } = this;
    sizes.delete(Number(offset));
    for (let last = order.at(-1); last !== undefined && !sizes.has(last); last = order.at(-1)) {
      this.top = last;
      order.pop();
    }
  }

  sizeOf(offset: bigint): number {
    return this.sizes.get(Number(offset)) ?? 0;
  }

  /** Returns a copy of a block's first bytes. */
  read(offset: bigint, maxBytes = MAX_BLOCK_BYTES): Uint8Array {
    const from = Number(offset);
    return this.memory.slice(from, from + Math.min(this.sizeOf(offset), maxBytes));
  }

  /** Returns a copy of bytes of one block, or null when they lie in no block. */
  readWithin(at: number, size: number): Uint8Array | null {
    const block = this.order.findLast((offset) => offset <= at && this.sizes.has(offset));
    if (block === undefined || at + size > block + this.sizeOf(BigInt(block))) return null;
    return this.memory.slice(at, at + size);
  }

  store(bytes: Uint8Array): bigint {
    const offset = this.alloc(BigInt(bytes.length));
    this.memory.set(bytes, Number(offset));
    return offset;
  }

  loadU8(at: number): number {
    return this.isInBounds(at, 1) ? this.view.getUint8(at) : 0;
  }

  loadU64(at: number): bigint {
    return this.isInBounds(at, 8) ? this.view.getBigUint64(at, true) : 0n;
  }

  storeU8(at: number, value: number): void {
    if (this.isInBounds(at, 1)) this.view.setUint8(at, value);
  }

  storeU64(at: number, value: bigint): void {
    if (this.isInBounds(at, 8)) this.view.setBigUint64(at, value, true);
  }

  private isInBounds(at: number, size: number): boolean {
    return at >= FIRST_BLOCK && at + size <= this.memory.length;
  }

  private grow(needed: number): void {
    if (needed > MAX_MEMORY_BYTES)
      this.violate('memory', `the tool holds over ${MAX_MEMORY_BYTES} bytes of its host's memory`);
    if (needed <= this.memory.length) return;
    const larger = new Uint8Array(Math.min(MAX_MEMORY_BYTES, Math.max(needed, this.memory.length * 2)));
    larger.set(this.memory);
    this.memory = larger;
    this.view = new DataView(larger.buffer);
  }
}
