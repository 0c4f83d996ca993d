import { BlockMemory, FIRST_BLOCK, MAX_BLOCK_BYTES } from './block-memory.js';
import type { Violate, Violation } from './block-memory.js';
import type { CallSettings, HttpResponseHead, LogLine } from './protocol.js';
import { createStoreFunctions } from './store-functions.js';
import type { UseStore } from './store-functions.js';
import { NO_ABILITIES, WasiStubs } from './wasi-stubs.js';
import type { CallAbilities } from './wasi-stubs.js';

type HostFunction = (...args: never[]) => bigint | number | void;
type HostFunctions = Readonly<Record<string, HostFunction>>;
const MAX_LOG_BYTES = 1_024;
const MAX_HTTP_REQUEST_BYTES = 16 * 1024;
const MAX_HTTP_BODY_BYTES = 64 * 1024;
const LOG_LEVEL_INFO = 2;
const NO_BYTES = new Uint8Array(0);
const decoder = new TextDecoder();
const encoder = new TextEncoder();

export interface KernelResult {
  readonly output: Uint8Array;
  readonly error: Uint8Array | null;
  /** Stays set even when the plug-in catches the exception. */
  readonly violation: Violation | null;
}

/** Requests a page from the service for the plug-in. */
export type RequestPage = (
  request: string,
  sent: Uint8Array,
) => { readonly head: HttpResponseHead; readonly body: Uint8Array };

/** Host functions and settings of one call. */
export interface CallHost {
  readonly http: RequestPage;
  readonly store: UseStore;
  readonly abilities: CallAbilities;
  readonly settings: CallSettings;
}

const LOAD_HOST: CallHost = {
  http: () => ({ head: { end: 'refused', reason: 'http: not while a plug-in is loaded' }, body: NO_BYTES }),
  store: () => ({
    answer: { end: 'refused', reason: 'store: not while a plug-in is loaded' },
    body: NO_BYTES,
  }),
  abilities: NO_ABILITIES,
  settings: {},
};

interface CallState {
  readonly input: Uint8Array;
  readonly log: (line: LogLine) => void;
  readonly host: CallHost;
  readonly blocks: BlockMemory;
  readonly vars: Map<string, Uint8Array>;
  varBytes: number;
  /** Status and content type of the last page. */
  status: number;
  contentType: string;
  output: Uint8Array;
  error: Uint8Array | null;
  violation: Violation | null;
}

const readU64 = (input: Uint8Array, at: number): bigint =>
  at >= 0 && at + 8 <= input.length
    ? new DataView(input.buffer, input.byteOffset).getBigUint64(at, true)
    : 0n;

/**
 * Host side of Extism's interface. The functions live as long as the cell. `begin` replaces the
 * state of a call as a whole.
 */
export class ExtismKernel {
  readonly functions: HostFunctions;
  /** Functions of capabilities other than `http:`. */
  readonly userFunctions: HostFunctions;
  readonly wasi: WasiStubs;
  private state: CallState;

  /** `memory` returns the memory of the running instance, which WASI's functions write to. */
  constructor(memory: () => unknown = () => undefined) {
    this.state = this.createState(NO_BYTES, () => undefined, LOAD_HOST);
    this.functions = {
      ...this.blockFunctions(),
      ...this.inputFunctions(),
      ...this.resultFunctions(),
      ...this.settingFunctions(),
      ...this.httpFunctions(),
      ...this.logFunctions(),
    };
    this.wasi = new WasiStubs(() => this.wasiHost(), memory);
    const violate: Violate = (end, message) => this.violate(end, message);
    const call = { blocks: () => this.state.blocks, store: () => this.state.host.store, violate };
    this.userFunctions = { ...createStoreFunctions(call), ...this.ambientFunctions() };
  }

  /** Starts a call without any data of the one before it. `input` has at most 1 MiB. */
  begin(input: Uint8Array, log: (line: LogLine) => void, host: CallHost = LOAD_HOST): void {
    this.state = this.createState(input, log, host);
    this.wasi.reset();
    if (input.length > 0) this.state.blocks.store(input);
  }

  result(): KernelResult {
    const { output, error, violation } = this.state;
    return { output, error, violation };
  }

  private createState(input: Uint8Array, log: (line: LogLine) => void, host: CallHost): CallState {
    return {
      input,
      log,
      host,
      blocks: new BlockMemory(input.length, (end, message) => this.violate(end, message)),
      vars: new Map(),
      varBytes: 0,
      status: 0,
      contentType: '',
      output: NO_BYTES,
      error: null,
      violation: null,
    };
  }

  private violate(end: Violation['end'], message: string): never {
    this.state.violation ??= { end, message };
    throw new Error(message);
  }

  private readText(offset: bigint, maxBytes?: number): string {
    return decoder.decode(this.state.blocks.read(offset, maxBytes));
  }

  private storeText(text: string): bigint {
    return this.state.blocks.store(encoder.encode(text));
  }

  private setOutput(offset: bigint, size: bigint): void {
    const bytes = Number(BigInt.asUintN(64, size));
    if (bytes > MAX_BLOCK_BYTES)
      this.violate('output', `an output of ${bytes} bytes, at most ${MAX_BLOCK_BYTES} are kept`);
    const output = bytes === 0 ? NO_BYTES : this.state.blocks.readWithin(Number(offset), bytes);
    if (output === null) this.violate('output', `an output of ${bytes} bytes that lies in no block`);
    this.state.output = output;
  }

  private setVariable(name: string, value: Uint8Array | null): void {
    const { state } = this;
    state.varBytes += (value?.length ?? 0) - (state.vars.get(name)?.length ?? 0);
    if (state.varBytes > MAX_BLOCK_BYTES)
      this.violate('memory', `the tool's variables take over ${MAX_BLOCK_BYTES} bytes`);
    if (value === null) state.vars.delete(name);
    else state.vars.set(name, value);
  }

  private requestPage(request: bigint, body: bigint): bigint {
    const { blocks, host } = this.state;
    const size = blocks.sizeOf(request);
    if (blocks.sizeOf(body) > MAX_HTTP_BODY_BYTES)
      this.violate('denied', `http: a body of ${blocks.sizeOf(body)} bytes, at most ${MAX_HTTP_BODY_BYTES}`);
    if (size > MAX_HTTP_REQUEST_BYTES)
      this.violate('denied', `http: a request of ${size} bytes, at most ${MAX_HTTP_REQUEST_BYTES}`);
    const sent = body === 0n ? new Uint8Array(0) : blocks.read(body);
    const { head, body: page } = host.http(this.readText(request), sent);
    if (head.end === 'refused') this.violate('denied', head.reason);
    this.state.status = head.end === 'answered' ? head.status : 0;
    this.state.contentType = head.end === 'answered' ? head.contentType : 'text/plain';
    return page.length === 0 ? 0n : blocks.store(page);
  }

  private wasiHost() {
    const { log, host } = this.state;
    const exit = (code: number): never => this.violate('exited', `it exited with code ${code | 0}`);
    return { abilities: host.abilities, log, exit };
  }

  private ambientFunctions(): HostFunctions {
    return {
      clock_ms: () => BigInt(Date.now()),
      random_bytes: (count: number) => {
        const length = count >>> 0;
        if (length > MAX_BLOCK_BYTES)
          this.violate('memory', `${length} random bytes, at most ${MAX_BLOCK_BYTES} in one call`);
        return length === 0 ? 0n : this.state.blocks.store(this.wasi.fill(new Uint8Array(length)));
      },
    };
  }

  private blockFunctions(): HostFunctions {
    return {
      alloc: (size: bigint) => this.state.blocks.alloc(size),
      free: (offset: bigint) => this.state.blocks.free(offset),
      length: (offset: bigint) => BigInt(this.state.blocks.sizeOf(offset)),
      length_unsafe: (offset: bigint) => BigInt(this.state.blocks.sizeOf(offset)),
      load_u8: (at: bigint) => this.state.blocks.loadU8(Number(at)),
      load_u64: (at: bigint) => this.state.blocks.loadU64(Number(at)),
      store_u8: (at: bigint, value: number) => this.state.blocks.storeU8(Number(at), value),
      store_u64: (at: bigint, value: bigint) => this.state.blocks.storeU64(Number(at), value),
    };
  }

  private inputFunctions(): HostFunctions {
    return {
      input_offset: () => (this.state.input.length === 0 ? 0n : BigInt(FIRST_BLOCK)),
      input_length: () => BigInt(this.state.input.length),
      input_load_u8: (at: bigint) => this.state.input[Number(at)] ?? 0,
      input_load_u64: (at: bigint) => readU64(this.state.input, Number(at)),
    };
  }

  private resultFunctions(): HostFunctions {
    return {
      output_set: (offset: bigint, size: bigint) => this.setOutput(offset, size),
      error_set: (offset: bigint) => {
        this.state.error = offset === 0n ? null : this.state.blocks.read(offset);
      },
    };
  }

  private settingFunctions(): HostFunctions {
    return {
      config_get: (name: bigint) => {
        const { settings } = this.state.host;
        const key = this.readText(name);
        const value = Object.hasOwn(settings, key) ? settings[key] : undefined;
        return value === undefined ? 0n : this.storeText(value);
      },
      var_get: (name: bigint) => {
        const value = this.state.vars.get(this.readText(name));
        return value === undefined ? 0n : this.state.blocks.store(value);
      },
      var_set: (name: bigint, value: bigint) =>
        this.setVariable(this.readText(name), value === 0n ? null : this.state.blocks.read(value)),
    };
  }

  /** Status and headers are those of the last page. */
  private httpFunctions(): HostFunctions {
    return {
      http_request: (request: bigint, body: bigint) => this.requestPage(request, body),
      http_status_code: () => this.state.status,
      http_headers: () => this.storeText(JSON.stringify({ 'content-type': this.state.contentType })),
    };
  }

  private logFunctions(): HostFunctions {
    const logAt = (level: LogLine['level']) => (offset: bigint) => {
      this.state.log({ level, text: this.readText(offset, MAX_LOG_BYTES) });
      this.state.blocks.free(offset);
    };
    const discard = (offset: bigint): void => this.state.blocks.free(offset);
    return {
      log_trace: discard,
      log_debug: discard,
      log_info: logAt('info'),
      log_warn: logAt('warn'),
      log_error: logAt('error'),
      get_log_level: () => LOG_LEVEL_INFO,
    };
  }
}
