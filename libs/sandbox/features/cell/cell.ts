/*
 * The program of a cell. The service joins it with block-memory.ts and extism-kernel.ts and passes
 * the text on the command line (see isolation.ts), because the child may read no file. The cell
 * blocks on its pipe instead of running an event loop, so it handles one request at a time.
 */
import { readSync, writeSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import type { Violation } from './block-memory.js';
import { ExtismKernel } from './extism-kernel.js';
import type { CellFacts, CellReply, CellRequest, LogLine, StoreRequest } from './protocol.js';
import { NO_ABILITIES } from './wasi-stubs.js';

interface Instance {
  readonly exports: Readonly<Record<string, unknown>>;
}
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => Instance;
  readonly RuntimeError: ErrorConstructor;
};
type CallRequest = Extract<CellRequest, { type: 'call' }>;
type LoadRequest = Extract<CellRequest, { type: 'load' }>;
type Ended = Pick<Extract<CellReply, { type: 'ended' }>, 'end' | 'message'>;

const STDIN = 0;
const STDOUT = 1;
const HEADER_BYTES = 8;
const MAX_LOG_LINES = 20;
const MAX_MESSAGE = 500;
/** The same as in isolation.ts. */
const CELL_USER = 65_533;
const EMPTY_BODY = new Uint8Array(0);
const GARBAGE_BYTES = 12 * 1024 * 1024;

const modules = new Map<string, object>();
let exports: Instance['exports'] = {};
const kernel = new ExtismKernel(() => exports['memory']);

const readFully = (length: number): Buffer => {
  const buffer = Buffer.allocUnsafe(length);
  for (let at = 0; at < length;) {
    const read = readSync(STDIN, buffer, at, length - at, null);
    if (read === 0) process.exit(0); // the service has closed the pipe
    at += read;
  }
  return buffer;
};

const writeFully = (bytes: Uint8Array): void => {
  for (let at = 0; at < bytes.length;) at += writeSync(STDOUT, bytes, at);
};

const send = (reply: CellReply, body: Uint8Array = EMPTY_BODY): void => {
  const json = Buffer.from(JSON.stringify(reply));
  const header = Buffer.allocUnsafe(HEADER_BYTES);
  header.writeUInt32LE(json.length, 0);
  header.writeUInt32LE(body.length, 4);
  writeFully(Buffer.concat([header, json, body]));
};

const receive = (): { request: CellRequest; body: Uint8Array } => {
  const header = readFully(HEADER_BYTES);
  const request = JSON.parse(readFully(header.readUInt32LE(0)).toString()) as CellRequest;
  return { request, body: readFully(header.readUInt32LE(4)) };
};

/** Requests a page from the service and blocks for the response. The service holds the deadline. */
const requestPage = (id: number) => (request: string, sent: Uint8Array) => {
  send({ type: 'http', id, request }, sent);
  const { request: response, body } = receive();
  if (response.type !== 'http-answer' || response.id !== id)
    throw new Error('the service broke the protocol');
  return { head: response.answer, body };
};

/** Uses a store through the service and blocks for the response. */
const useStore = (id: number) => (request: StoreRequest, value: Uint8Array) => {
  send({ type: 'store', id, request }, value);
  const { request: response, body } = receive();
  if (response.type !== 'store-answer' || response.id !== id)
    throw new Error('the service broke the protocol');
  return { answer: response.answer, body };
};

const messageOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).slice(0, MAX_MESSAGE);

/** Reads an AssemblyScript string: UTF-16, with its length in bytes in the four bytes before it. */
const readAbortText = (memory: unknown, pointer: number): string => {
  const buffer = (memory as { buffer?: unknown } | undefined)?.buffer;
  if (!(buffer instanceof ArrayBuffer) || pointer < 4 || pointer > buffer.byteLength) return '';
  const length = new DataView(buffer).getUint32(pointer - 4, true);
  const end = Math.min(pointer + Math.min(length, MAX_MESSAGE), buffer.byteLength);
  return new TextDecoder('utf-16le').decode(buffer.slice(pointer, end));
};

const createAbort =
  (memory: () => unknown) => (message: number, file: number, line: number, column: number) => {
    const where = `${readAbortText(memory(), file >>> 0)}:${line >>> 0}:${column >>> 0}`;
    throw new Error(`abort: ${readAbortText(memory(), message >>> 0)} at ${where}`);
  };

/** Maps an exception to an end. Only V8's message identifies an exhausted stack. */
const classify = (error: unknown): Ended => {
  const message = messageOf(error);
  if (error instanceof RangeError && message.includes('call stack'))
    return { end: 'trapped', message: 'stack_overflow: it calls itself too deeply' };
  if (error instanceof RangeError && message.includes('memory')) return { end: 'memory', message };
  if (error instanceof WebAssembly.RuntimeError && message.includes('memory access out of bounds'))
    return { end: 'memory', message: 'memory access out of bounds' };
  return { end: 'trapped', message };
};

const callExport = (exported: unknown): number => {
  const status: unknown = typeof exported === 'function' ? exported() : undefined;
  return typeof status === 'number' ? status : 0;
};

const imports = {
  'extism:host/env': kernel.functions,
  'extism:host/user': kernel.userFunctions,
  wasi_snapshot_preview1: kernel.wasi.functions,
  env: { abort: createAbort(() => exports['memory']) },
};

/**
 * Creates a fresh instance on the kernel's fresh state; no data of an earlier call is reachable.
 */
const instantiate = (module: object): number => {
  exports = {};
  const started = performance.now();
  exports = new WebAssembly.Instance(module, imports).exports;
  return performance.now() - started;
};

const createCallLog = (id: number) => {
  let lines = 0;
  const log = (line: LogLine): void => {
    lines += 1;
    if (lines <= MAX_LOG_LINES) send({ type: 'log', id, line });
    else if (lines === MAX_LOG_LINES + 1) send({ type: 'flood', id });
  };
  return { log, suppressed: () => Math.max(0, lines - MAX_LOG_LINES) };
};

const call = (request: CallRequest, input: Uint8Array): void => {
  const { id, digest, entry, settings = {}, abilities = NO_ABILITIES } = request;
  const module = modules.get(digest);
  if (module === undefined) throw new Error('the module was not loaded');
  const { log, suppressed } = createCallLog(id);
  kernel.begin(input, log, { http: requestPage(id), store: useStore(id), abilities, settings });
  const end = (ended: Ended | Violation): void => {
    const { message } = ended;
    const why = ended.end === 'exited' ? 'trapped' : ended.end;
    send({ type: 'ended', id, end: why, message, suppressed: suppressed() });
  };
  try {
    const instantiateMs = instantiate(module);
    callExport(exports['_initialize']); // reactor convention of TinyGo and others
    const status = callExport(exports[entry]);
    const { output, error, violation } = kernel.result();
    if (violation !== null) return end(violation);
    const reply = { id, status, instantiateMs, suppressed: suppressed() };
    send({ type: 'returned', ...reply, failed: error !== null }, error ?? output);
  } catch (error) {
    end(kernel.result().violation ?? classify(error));
  } finally {
    exports = {}; // lets the collector free the instance's memory while the cell waits
  }
};

const load = ({ id, digest }: LoadRequest, bytes: Uint8Array): void => {
  try {
    const started = performance.now();
    const module = new WebAssembly.Module(bytes);
    const compileMs = performance.now() - started;
    kernel.begin(EMPTY_BODY, () => undefined);
    const instantiateMs = instantiate(module);
    modules.set(digest, module);
    send({ type: 'loaded', id, compileMs, instantiateMs });
  } catch (error) {
    send({ type: 'refused', id, message: messageOf(error) });
  }
};

/** Changes the user of a cell that still runs as root, before any plug-in runs. */
const dropRoot = (): void => {
  if (process.getuid?.() !== 0) return;
  try {
    process.setgroups?.([]);
    process.setgid?.(CELL_USER);
    process.setuid?.(CELL_USER);
  } catch {
    // Without the capability to do so: `ready` contains the user, and the service reports it.
  }
};

const collectFacts = (): CellFacts => ({
  uid: process.getuid?.() ?? null,
  interfaces: Object.keys(networkInterfaces()),
  // `process.permission` is missing without the permission model, and files are accessible then.
  fileAccess: process.permission?.has('fs.read') ?? true,
});

/**
 * Creates a function that collects garbage when resident memory has grown. Dead instances hold
 * their memory until a collection, and V8 would let many pile up. The cell calls it after a reply,
 * when no call waits.
 */
const createCollector = (): (() => void) => {
  const { gc } = globalThis;
  const resident = (): number => process.memoryUsage.rss();
  let limit = resident() + GARBAGE_BYTES;
  return () => {
    if (gc === undefined || resident() < limit) return;
    gc();
    // A helper thread frees the pages of a dead memory; only the next collection waits for it.
    if (resident() >= limit) gc();
    limit = Math.max(limit, resident() + GARBAGE_BYTES / 2);
  };
};

/** Serves requests until the pipe closes. */
export const serve = (): void => {
  dropRoot();
  const collect = createCollector();
  send({ type: 'ready', facts: collectFacts() });
  for (;;) {
    const { request, body } = receive();
    if (request.type === 'load') load(request, body);
    else if (request.type === 'call') call(request, body);
    collect();
  }
};
