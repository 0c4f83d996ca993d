/*
 * The program of a cell. Its text and that of extism-kernel.ts are handed to the child on the command line
 * (cell-program.ts): the child's user may not be able to read this folder, and gets no right to read any file.
 * It blocks on its pipe instead of running an event loop: one request at a time, and nothing else can happen.
 */
import { readSync, writeSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { createKernel } from './extism-kernel.js';
import type { CellFacts, CellReply, CellRequest, LogLine } from './protocol.js';

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
/** The same as in wall.ts. */
const CELL_USER = 65_533;
const NOTHING = new Uint8Array(0);
const GARBAGE_BYTES = 12 * 1024 * 1024;

const modules = new Map<string, object>();
const kernel = createKernel();
let exports: Instance['exports'] = {};

const readFully = (length: number): Buffer => {
  const buffer = Buffer.allocUnsafe(length);
  for (let at = 0; at < length;) {
    const read = readSync(STDIN, buffer, at, length - at, null);
    if (read === 0) process.exit(0); // the service is gone
    at += read;
  }
  return buffer;
};

const writeFully = (bytes: Uint8Array): void => {
  for (let at = 0; at < bytes.length;) at += writeSync(STDOUT, bytes, at);
};

const send = (reply: CellReply, body: Uint8Array = NOTHING): void => {
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

/** Asks the service for a page and blocks until the answer is there: the deadline of the call is the service's. */
const askHttp = (id: number) => (request: string) => {
  send({ type: 'http', id, request });
  const { request: answer, body } = receive();
  if (answer.type !== 'http-answer' || answer.id !== id) throw new Error('the service broke the protocol');
  return { head: answer.answer, body };
};

const messageOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).slice(0, MAX_MESSAGE);

/** Reads a string of AssemblyScript's: UTF-16, its length in bytes in the four bytes before it. */
const readAbortText = (memory: unknown, pointer: number): string => {
  const buffer = (memory as { buffer?: unknown } | undefined)?.buffer;
  if (!(buffer instanceof ArrayBuffer) || pointer < 4 || pointer > buffer.byteLength) return '';
  const length = new DataView(buffer).getUint32(pointer - 4, true);
  const end = Math.min(pointer + Math.min(length, MAX_MESSAGE), buffer.byteLength);
  return new TextDecoder('utf-16le').decode(buffer.slice(pointer, end));
};

const abortOf = (memory: () => unknown) => (message: number, file: number, line: number, column: number) => {
  const where = `${readAbortText(memory(), file >>> 0)}:${line >>> 0}:${column >>> 0}`;
  throw new Error(`abort: ${readAbortText(memory(), message >>> 0)} at ${where}`);
};

/** Says what kind of end an exception is; a stack that ran out is told apart by V8's text alone. */
const classify = (error: unknown): Ended => {
  const message = messageOf(error);
  if (error instanceof RangeError && message.includes('call stack'))
    return { end: 'trapped', message: 'stack_overflow: it calls itself too deeply' };
  if (error instanceof RangeError && message.includes('memory')) return { end: 'memory', message };
  if (error instanceof WebAssembly.RuntimeError && message.includes('memory access out of bounds'))
    return { end: 'memory', message: 'memory access out of bounds' };
  return { end: 'trapped', message };
};

const run = (exported: unknown): number => {
  const status: unknown = typeof exported === 'function' ? exported() : undefined;
  return typeof status === 'number' ? status : 0;
};

const imports = {
  'extism:host/env': kernel.functions,
  env: { abort: abortOf(() => exports['memory']) },
};

/** A fresh instance on the kernel's fresh state: nothing of an earlier call is reachable from it. */
const instantiate = (module: object): number => {
  exports = {};
  const started = performance.now();
  exports = new WebAssembly.Instance(module, imports).exports;
  return performance.now() - started;
};

const logger = (id: number) => {
  let lines = 0;
  const log = (line: LogLine): void => {
    lines += 1;
    if (lines <= MAX_LOG_LINES) send({ type: 'log', id, line });
    else if (lines === MAX_LOG_LINES + 1) send({ type: 'flood', id });
  };
  return { log, suppressed: () => Math.max(0, lines - MAX_LOG_LINES) };
};

const call = ({ id, digest, entry, settings }: CallRequest, input: Uint8Array): void => {
  const module = modules.get(digest);
  if (module === undefined) throw new Error('the module was not loaded');
  const { log, suppressed } = logger(id);
  kernel.begin(input, log, { http: askHttp(id), settings: settings ?? {} });
  const end = (ended: Ended): void => send({ type: 'ended', id, ...ended, suppressed: suppressed() });
  try {
    const instantiateMs = instantiate(module);
    run(exports['_initialize']); // the reactor convention of TinyGo and others
    const status = run(exports[entry]);
    const { output, error, violation } = kernel.result();
    if (violation !== null) return end(violation);
    const reply = { id, status, instantiateMs, suppressed: suppressed() };
    send({ type: 'returned', ...reply, failed: error !== null }, error ?? output);
  } catch (error) {
    end(kernel.result().violation ?? classify(error));
  } finally {
    exports = {}; // the instance's memory can be collected while the cell waits
  }
};

const load = ({ id, digest }: LoadRequest, bytes: Uint8Array): void => {
  try {
    const started = performance.now();
    const module = new WebAssembly.Module(bytes);
    const compileMs = performance.now() - started;
    kernel.begin(NOTHING, () => undefined);
    const instantiateMs = instantiate(module);
    modules.set(digest, module);
    send({ type: 'loaded', id, compileMs, instantiateMs });
  } catch (error) {
    send({ type: 'refused', id, message: messageOf(error) });
  }
};

/** As root without a tool that changed the user before: the last moment to do it is now. */
const leaveRoot = (): void => {
  if (process.getuid?.() !== 0) return;
  try {
    process.setgroups?.([]);
    process.setgid?.(CELL_USER);
    process.setuid?.(CELL_USER);
  } catch {
    // Without the capability to do so; `ready` says which user it is, and the service reports it.
  }
};

const facts = (): CellFacts => ({
  uid: process.getuid?.() ?? null,
  interfaces: Object.keys(networkInterfaces()),
  // Without the permission model there is no `process.permission`, and files are open to this process.
  fileAccess: process.permission?.has('fs.read') ?? true,
});

/**
 * Dead instances keep their memory until it is collected, and V8 would let many of them pile up. So the cell collects
 * by itself, after an answer, when nobody waits for it.
 */
const createCollector = (): (() => void) => {
  const { gc } = globalThis;
  const resident = (): number => process.memoryUsage.rss();
  let limit = resident() + GARBAGE_BYTES;
  return () => {
    if (gc === undefined || resident() < limit) return;
    gc();
    // The pages of a dead memory are given back by a helper thread, for which only the next collection waits.
    if (resident() >= limit) gc();
    limit = Math.max(limit, resident() + GARBAGE_BYTES / 2);
  };
};

/** Serves requests until the pipe closes. */
export const serve = (): void => {
  leaveRoot();
  const collect = createCollector();
  send({ type: 'ready', facts: facts() });
  for (;;) {
    const { request, body } = receive();
    if (request.type === 'load') load(request, body);
    else if (request.type === 'call') call(request, body);
    collect();
  }
};
