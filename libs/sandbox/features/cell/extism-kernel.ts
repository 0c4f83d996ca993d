import type { CallSettings, HttpAnswerHead, LogLine } from './protocol.js';

type HostFunction = (...args: never[]) => bigint | number | void;
const MIB = 1024 * 1024;
/** The most that a plug-in may hand to its host as one block: an output, an error, a variable. */
const MAX_BLOCK_BYTES = MIB;
const MAX_KERNEL_BYTES = 8 * MIB;
const FIRST_BLOCK = 16; // 0 is Extism's "no block"
const MAX_LOG_BYTES = 1_024;
const MAX_HTTP_REQUEST_BYTES = 16 * 1024;
const LOG_LEVEL_INFO = 2;
const MIN_KERNEL_BYTES = 64 * 1024;
/** Beyond the input, before the memory has to grow. */
const ROOM = 8 * 1024;
const NO_BYTES = new Uint8Array(0);
const decoder = new TextDecoder();

/** A limit that the plug-in ran into; it stands even when the plug-in catches the exception. */
export interface Violation {
  readonly end: 'memory' | 'output' | 'denied';
  readonly message: string;
}
export interface KernelResult {
  readonly output: Uint8Array;
  readonly error: Uint8Array | null;
  readonly violation: Violation | null;
}

/** Asks the service for a page on the plug-in's behalf. */
export type AskHttp = (request: string) => { readonly head: HttpAnswerHead; readonly body: Uint8Array };

/** Until a call has been given its own. */
const NO_HTTP: AskHttp = () => ({
  head: { end: 'refused', reason: 'http: not while a plug-in is loaded' },
  body: NO_BYTES,
});

type Violate = (end: Violation['end'], message: string) => never;

interface CallState {
  readonly input: Uint8Array;
  readonly log: (line: LogLine) => void;
  readonly http: AskHttp;
  readonly settings: CallSettings;
  status: number;
  contentType: string;
  /** Blocks that the plug-in and its host hand each other; `top` is where the next one goes. */
  memory: Uint8Array;
  view: DataView;
  top: number;
  readonly sizes: Map<number, number>;
  readonly order: number[];
  readonly vars: Map<string, Uint8Array>;
  varBytes: number;
  output: Uint8Array;
  error: Uint8Array | null;
  violation: Violation | null;
}

/** Memory for most calls, wiped before each: allocating it anew would be most of a small call's garbage. */
const smallMemory = new Uint8Array(MIN_KERNEL_BYTES);

const freshMemory = (inputBytes: number): Uint8Array => {
  const needed = FIRST_BLOCK + inputBytes + ROOM;
  return needed > MIN_KERNEL_BYTES ? new Uint8Array(needed) : smallMemory.fill(0);
};

/** What a call is given beside its input. */
export interface CallGifts {
  readonly http: AskHttp;
  readonly settings: CallSettings;
}
const NO_GIFTS: CallGifts = { http: NO_HTTP, settings: {} };

const freshState = (
  input: Uint8Array,
  log: (line: LogLine) => void,
  { http, settings } = NO_GIFTS,
): CallState => {
  const memory = freshMemory(input.length);
  return {
    input,
    log,
    http,
    settings,
    status: 0,
    contentType: '',
    memory,
    view: new DataView(memory.buffer),
    top: FIRST_BLOCK,
    sizes: new Map(),
    order: [],
    vars: new Map(),
    varBytes: 0,
    output: NO_BYTES,
    error: null,
    violation: null,
  };
};

/** Blocks of bytes between plug-in and host, in bounded memory that neither of them owns. */
const createBlocks = (state: () => CallState) => {
  const violate: Violate = (end, message) => {
    state().violation ??= { end, message };
    throw new Error(message);
  };
  const grow = (needed: number): void => {
    const call = state();
    if (needed > MAX_KERNEL_BYTES)
      violate('memory', `the tool holds over ${MAX_KERNEL_BYTES} bytes of its host's memory`);
    if (needed <= call.memory.length) return;
    const larger = new Uint8Array(Math.min(MAX_KERNEL_BYTES, Math.max(needed, call.memory.length * 2)));
    larger.set(call.memory);
    call.memory = larger;
    call.view = new DataView(larger.buffer);
  };
  const alloc = (size: bigint): bigint => {
    const call = state();
    const bytes = Number(BigInt.asUintN(64, size));
    if (bytes === 0) return 0n;
    if (bytes > MAX_BLOCK_BYTES)
      violate('output', `a block of ${bytes} bytes, at most ${MAX_BLOCK_BYTES} may be handed to the host`);
    const offset = call.top;
    grow(offset + bytes);
    call.top = (offset + bytes + 7) & ~7;
    call.sizes.set(offset, bytes);
    call.order.push(offset);
    return BigInt(offset);
  };
  /** Space is won back from the end only: enough for what is freed in the order of a stack, as logs and errors are. */
  const free = (offset: bigint): void => {
    const call = state();
    call.sizes.delete(Number(offset));
    for (
      let last = call.order.at(-1);
      last !== undefined && !call.sizes.has(last);
      last = call.order.at(-1)
    ) {
      call.top = last;
      call.order.pop();
    }
  };
  const sizeOf = (offset: bigint): number => state().sizes.get(Number(offset)) ?? 0;
  /** A copy of a block's first bytes. */
  const read = (offset: bigint, most = MAX_BLOCK_BYTES): Uint8Array =>
    state().memory.slice(Number(offset), Number(offset) + Math.min(sizeOf(offset), most));
  const store = (bytes: Uint8Array): bigint => {
    const offset = alloc(BigInt(bytes.length));
    state().memory.set(bytes, Number(offset));
    return offset;
  };
  return { violate, alloc, free, sizeOf, read, store };
};

const inBounds = (memory: Uint8Array, at: number, size: number): boolean =>
  at >= FIRST_BLOCK && at + size <= memory.length;

const wordOf = (input: Uint8Array, at: number): bigint =>
  at >= 0 && at + 8 <= input.length
    ? new DataView(input.buffer, input.byteOffset).getBigUint64(at, true)
    : 0n;

const setVariable = (state: CallState, violate: Violate, name: string, value: Uint8Array | null): void => {
  state.varBytes += (value?.length ?? 0) - (state.vars.get(name)?.length ?? 0);
  if (state.varBytes > MAX_BLOCK_BYTES)
    violate('memory', `the tool's variables take over ${MAX_BLOCK_BYTES} bytes`);
  if (value === null) state.vars.delete(name);
  else state.vars.set(name, value);
};

const createInputFunctions = (state: () => CallState): Record<string, HostFunction> => ({
  input_offset: () => (state().input.length === 0 ? 0n : BigInt(FIRST_BLOCK)),
  input_length: () => BigInt(state().input.length),
  input_load_u8: (at: bigint) => state().input[Number(at)] ?? 0,
  input_load_u64: (at: bigint) => wordOf(state().input, Number(at)),
});

/** Pages, one after another: the status and headers are of the last one. */
const createHttpFunctions = (
  state: () => CallState,
  { violate, sizeOf, read, store }: ReturnType<typeof createBlocks>,
): Record<string, HostFunction> => ({
  http_request: (request: bigint, body: bigint): bigint => {
    if (sizeOf(body) > 0) violate('denied', 'http: only GET, which has no body');
    if (sizeOf(request) > MAX_HTTP_REQUEST_BYTES)
      violate('denied', `http: a request of ${sizeOf(request)} bytes, at most ${MAX_HTTP_REQUEST_BYTES}`);
    const call = state();
    const answer = call.http(decoder.decode(read(request)));
    if (answer.head.end === 'refused') violate('denied', answer.head.reason);
    const answered = answer.head.end === 'answered' ? answer.head : { status: 0, contentType: 'text/plain' };
    call.status = answered.status;
    call.contentType = answered.contentType;
    return answer.body.length === 0 ? 0n : store(answer.body);
  },
  http_status_code: () => state().status,
  http_headers: () =>
    store(new TextEncoder().encode(JSON.stringify({ 'content-type': state().contentType }))),
});

/**
 * The host's side of Extism's interface. Offsets out of bounds read as 0 and are not written, as in Extism's kernel.
 * The functions live as long as the cell; all that a call leaves behind is in one state, which `begin` replaces whole.
 */
export const createKernel = () => {
  let state = freshState(NO_BYTES, () => undefined);
  const blocks = createBlocks(() => state);
  const { violate, alloc, free, sizeOf, read, store } = blocks;

  const text = (offset: bigint, most?: number): string => decoder.decode(read(offset, most));
  const setOutput = (offset: bigint, size: bigint): void => {
    const bytes = Number(BigInt.asUintN(64, size));
    if (bytes > MAX_BLOCK_BYTES)
      violate('output', `an output of ${bytes} bytes, at most ${MAX_BLOCK_BYTES} are kept`);
    const at = Number(offset);
    if (bytes === 0) state.output = NO_BYTES;
    else if (inBounds(state.memory, at, bytes)) state.output = state.memory.slice(at, at + bytes);
  };
  const logAt = (level: LogLine['level']) => (offset: bigint) => {
    state.log({ level, text: text(offset, MAX_LOG_BYTES) });
    free(offset);
  };
  const functions: Record<string, HostFunction> = {
    alloc,
    free,
    length: (offset: bigint) => BigInt(sizeOf(offset)),
    length_unsafe: (offset: bigint) => BigInt(sizeOf(offset)),
    load_u8: (at: bigint) => (inBounds(state.memory, Number(at), 1) ? state.view.getUint8(Number(at)) : 0),
    load_u64: (at: bigint) =>
      inBounds(state.memory, Number(at), 8) ? state.view.getBigUint64(Number(at), true) : 0n,
    store_u8: (at: bigint, value: number) => {
      if (inBounds(state.memory, Number(at), 1)) state.view.setUint8(Number(at), value);
    },
    store_u64: (at: bigint, value: bigint) => {
      if (inBounds(state.memory, Number(at), 8)) state.view.setBigUint64(Number(at), value, true);
    },
    ...createInputFunctions(() => state),
    output_set: setOutput,
    error_set: (offset: bigint) => {
      state.error = offset === 0n ? null : read(offset);
    },
    config_get: (name: bigint) => {
      const key = text(name);
      const value = Object.hasOwn(state.settings, key) ? state.settings[key] : undefined;
      return value === undefined ? 0n : store(new TextEncoder().encode(value));
    },
    var_get: (name: bigint) => {
      const value = state.vars.get(text(name));
      return value === undefined ? 0n : store(value);
    },
    var_set: (name: bigint, value: bigint) =>
      setVariable(state, violate, text(name), value === 0n ? null : read(value)),
    ...createHttpFunctions(() => state, blocks),
    log_trace: free,
    log_debug: free,
    log_info: logAt('info'),
    log_warn: logAt('warn'),
    log_error: logAt('error'),
    get_log_level: () => LOG_LEVEL_INFO,
  };
  return {
    functions,
    /** Starts a call: nothing of the one before it remains. `input` takes at most 1 MiB. */
    begin: (input: Uint8Array, log: (line: LogLine) => void, gifts?: CallGifts): void => {
      state = freshState(input, log, gifts);
      if (input.length > 0) store(input);
    },
    result: (): KernelResult => ({ output: state.output, error: state.error, violation: state.violation }),
  };
};
