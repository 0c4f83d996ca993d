import type { LogLine } from './protocol.js';

/** Abilities of a call that its plug-in was granted. Without one, its functions give constants. */
export interface CallAbilities {
  /** Whether output to the standard streams is written to the log. */
  readonly log: boolean;
  readonly clock: boolean;
  readonly random: boolean;
}

export const NO_ABILITIES: CallAbilities = { log: false, clock: false, random: false };

/** Parts of the running call that the stubs use. */
export interface WasiHost {
  readonly abilities: CallAbilities;
  readonly log: (line: LogLine) => void;
  /** Ends the call, because the module asked to exit. Must throw. */
  readonly exit: (code: number) => never;
}

type WasiFunctions = Readonly<Record<string, (...args: never[]) => number | void>>;

const OK = 0;
const BAD_FILE = 8;
const FAULT = 21;
const INVALID = 28;
const NO_SYSTEM_CALL = 52;
const NOT_SUPPORTED = 58;
const NO_SEEK = 70;

const LAST_STREAM = 2;
const CHARACTER_DEVICE = 2;
const FDSTAT_BYTES = 24;
const SUBSCRIPTION_BYTES = 48;
const EVENT_BYTES = 32;
const MAX_SUBSCRIPTIONS = 1_024;
const MAX_LINE_BYTES = 1_024;
const MAX_RANDOM_CHUNK = 65_536;
const NS_PER_MS = 1_000_000n;
const NS_PER_READING = 1_000n;

/** Functions without any effect: each returns that the system call does not exist. */
const ABSENT = [
  ...['fd_advise', 'fd_allocate', 'fd_datasync', 'fd_fdstat_set_rights', 'fd_filestat_get'],
  ...['fd_filestat_set_size', 'fd_filestat_set_times', 'fd_pread', 'fd_prestat_dir_name', 'fd_pwrite'],
  ...['fd_readdir', 'fd_renumber', 'fd_sync', 'fd_tell', 'proc_raise'],
];

const isStream = (fd: number): boolean => fd >>> 0 <= LAST_STREAM;

/**
 * Functions of WASI for modules whose compiler needs them. They give no file, no socket, no
 * argument and no variable of the environment. Output goes to the log or is discarded. Time stands
 * still and random bytes are the same in each call, unless the plug-in was granted them.
 */
export class WasiStubs {
  readonly functions: WasiFunctions;
  private readonly host: () => WasiHost;
  private readonly memory: () => unknown;
  private readings = 0n;
  private seed = 0;

  constructor(host: () => WasiHost, memory: () => unknown) {
    this.host = host;
    this.memory = memory;
    this.functions = {
      ...Object.fromEntries(ABSENT.map((name) => [name, () => NO_SYSTEM_CALL])),
      ...this.environmentFunctions(),
      ...this.clockFunctions(),
      ...this.streamFunctions(),
      random_get: (at: number, length: number) => this.fillRandom(at, length),
      sched_yield: () => OK,
      proc_exit: (code: number) => this.host().exit(code),
    };
  }

  /** Starts a call with the time and the random bytes of a first one. */
  reset(): void {
    this.readings = 0n;
    this.seed = 0;
  }

  /** Fills with random bytes, or with the next ones of a fixed sequence without the ability. */
  fill(bytes: Uint8Array): Uint8Array {
    if (this.host().abilities.random)
      for (let at = 0; at < bytes.length; at += MAX_RANDOM_CHUNK)
        crypto.getRandomValues(bytes.subarray(at, at + MAX_RANDOM_CHUNK));
    else for (let at = 0; at < bytes.length; at++) bytes[at] = this.nextByte();
    return bytes;
  }

  /** Next byte of Mulberry32 from the seed 0. */
  private nextByte(): number {
    this.seed = (this.seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.seed ^ (this.seed >>> 15), 1 | this.seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) & 0xff;
  }

  /** Returns a part of the module's memory, or null if there is none at this place. */
  private slice(at: number, length: number): Uint8Array | null {
    const buffer = (this.memory() as { buffer?: unknown } | undefined)?.buffer;
    const [start, size] = [at >>> 0, length >>> 0];
    if (!(buffer instanceof ArrayBuffer) || start + size > buffer.byteLength) return null;
    return new Uint8Array(buffer, start, size);
  }

  private view(at: number, length: number): DataView | null {
    const bytes = this.slice(at, length);
    return bytes && new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  private writeU32(at: number, value: number): number {
    const view = this.view(at, 4);
    view?.setUint32(0, value, true);
    return view ? OK : FAULT;
  }

  private writeU64(at: number, value: bigint): number {
    const view = this.view(at, 8);
    view?.setBigUint64(0, value, true);
    return view ? OK : FAULT;
  }

  /** There are no arguments and no variables. */
  private environmentFunctions(): WasiFunctions {
    const sizes = (count: number, bytes: number): number =>
      this.writeU32(count, 0) || this.writeU32(bytes, 0);
    return {
      args_get: () => OK,
      args_sizes_get: sizes,
      environ_get: () => OK,
      environ_sizes_get: sizes,
    };
  }

  /**
   * Time in ns, in steps of 1 ms. Without the ability the wall clock stays at 0, and the other
   * clocks count their readings, because some runtimes stop if a clock never advances.
   */
  private readClock(id: number): bigint {
    const isRealTime = id === 0;
    if (this.host().abilities.clock)
      return BigInt(Math.floor(isRealTime ? Date.now() : performance.now())) * NS_PER_MS;
    if (isRealTime) return 0n;
    this.readings += 1n;
    return this.readings * NS_PER_READING;
  }

  private clockFunctions(): WasiFunctions {
    return {
      clock_res_get: (_id: number, at: number) => this.writeU64(at, NS_PER_MS),
      clock_time_get: (id: number, _precision: bigint, at: number) => this.writeU64(at, this.readClock(id)),
      poll_oneoff: (from: number, to: number, count: number, countAt: number) =>
        this.poll(from, to, count >>> 0, countAt),
    };
  }

  /** Reports each clock of a wait as elapsed, and everything else as not supported. */
  private poll(from: number, to: number, count: number, countAt: number): number {
    if (count === 0 || count > MAX_SUBSCRIPTIONS) return INVALID;
    const asked = this.view(from, count * SUBSCRIPTION_BYTES);
    const events = this.view(to, count * EVENT_BYTES);
    if (asked === null || events === null) return FAULT;
    for (let index = 0; index < count; index++) {
      const [source, target] = [index * SUBSCRIPTION_BYTES, index * EVENT_BYTES];
      const userData = asked.getBigUint64(source, true);
      const tag = asked.getUint8(source + 8);
      for (let at = 0; at < EVENT_BYTES; at += 8) events.setBigUint64(target + at, 0n, true);
      events.setBigUint64(target, userData, true);
      events.setUint16(target + 8, tag === 0 ? OK : NOT_SUPPORTED, true);
      events.setUint8(target + 10, tag);
    }
    return this.writeU32(countAt, count);
  }

  private streamFunctions(): WasiFunctions {
    const checkStream = (fd: number): number => (isStream(fd) ? OK : BAD_FILE);
    return {
      fd_close: checkStream,
      fd_fdstat_set_flags: checkStream,
      fd_prestat_get: () => BAD_FILE,
      fd_seek: (fd: number) => (isStream(fd) ? NO_SEEK : BAD_FILE),
      fd_fdstat_get: (fd: number, at: number) => this.describeStream(fd, at),
      // The standard input is empty.
      fd_read: (fd: number, _buffers: number, _count: number, readAt: number) =>
        fd === 0 ? this.writeU32(readAt, 0) : BAD_FILE,
      fd_write: (fd: number, buffers: number, count: number, writtenAt: number) =>
        this.write(fd, buffers, count >>> 0, writtenAt),
    };
  }

  private describeStream(fd: number, at: number): number {
    if (!isStream(fd)) return BAD_FILE;
    const bytes = this.slice(at, FDSTAT_BYTES);
    bytes?.fill(0).set([CHARACTER_DEVICE]);
    return bytes ? OK : FAULT;
  }

  /** Writes the start of the buffers as one log line, or discards them. Reports all as written. */
  private write(fd: number, buffers: number, count: number, writtenAt: number): number {
    if (fd !== 1 && fd !== 2) return BAD_FILE;
    const list = this.view(buffers, count * 8);
    if (list === null || count * 8 > 0xffff_ffff) return FAULT;
    const line: number[] = [];
    let written = 0;
    for (let index = 0; index < count; index++) {
      const bytes = this.slice(list.getUint32(index * 8, true), list.getUint32(index * 8 + 4, true));
      if (bytes === null) return FAULT;
      written += bytes.length;
      if (line.length < MAX_LINE_BYTES) line.push(...bytes.subarray(0, MAX_LINE_BYTES - line.length));
    }
    const { abilities, log } = this.host();
    const text = new TextDecoder().decode(Uint8Array.from(line)).trimEnd();
    if (abilities.log && text !== '') log({ level: fd === 1 ? 'info' : 'warn', text });
    return this.writeU32(writtenAt, written);
  }

  private fillRandom(at: number, length: number): number {
    const bytes = this.slice(at, length);
    if (bytes) this.fill(bytes);
    return bytes ? OK : FAULT;
  }
}
