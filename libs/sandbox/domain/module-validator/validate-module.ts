import { ModuleRejected, rejectModule } from './byte-reader.js';
import type { RejectionCode } from './byte-reader.js';
import { imposeMaximum, readModuleLayout } from './module-layout.js';
import type { ImportEntry, ModuleLayout, Signature } from './module-layout.js';

/** Import module under which each Extism development kit expects its host functions. */
export const EXTISM_MODULE = 'extism:host/env';

/**
 * Extism's host functions that a cell implements, with their exact types. A function imported with
 * another type would fail in the middle of a call instead of at load.
 */
export const EXTISM_FUNCTIONS: Readonly<Record<string, Signature>> = {
  alloc: '(i64)->(i64)',
  free: '(i64)->()',
  length: '(i64)->(i64)',
  length_unsafe: '(i64)->(i64)',
  load_u8: '(i64)->(i32)',
  load_u64: '(i64)->(i64)',
  store_u8: '(i64,i32)->()',
  store_u64: '(i64,i64)->()',
  input_offset: '()->(i64)',
  input_length: '()->(i64)',
  input_load_u8: '(i64)->(i32)',
  input_load_u64: '(i64)->(i64)',
  output_set: '(i64,i64)->()',
  error_set: '(i64)->()',
  config_get: '(i64)->(i64)',
  var_get: '(i64)->(i64)',
  var_set: '(i64,i64)->()',
  log_trace: '(i64)->()',
  log_debug: '(i64)->()',
  log_info: '(i64)->()',
  log_warn: '(i64)->()',
  log_error: '(i64)->()',
  get_log_level: '()->(i32)',
};

/**
 * Host functions for plug-ins with an `http:` capability. The service implements them through its
 * vetted client.
 */
export const HTTP_FUNCTIONS: Readonly<Record<string, Signature>> = {
  http_request: '(i64,i64)->(i64)',
  http_status_code: '()->(i32)',
  http_headers: '()->(i64)',
};

/**
 * Function that AssemblyScript's runtime imports to report a failed assertion: message, file, line,
 * column.
 */
export const ABORT = { module: 'env', name: 'abort', signature: '(i32,i32,i32,i32)->()' } as const;

export type PluginKind = 'tool' | 'channel';

export const MAX_MODULE_BYTES = 10 * 1024 * 1024;
export const MAX_TABLE_ENTRIES = 65_536;
const MAX_TABLES = 16;
const PAGES_PER_MIB = 16;

/** Types of a callable export in Extism: no parameters, and a status or nothing as the result. */
const CALLABLE: readonly Signature[] = ['()->(i32)', '()->()'];
const REQUIRED_EXPORTS: Readonly<Record<PluginKind, readonly string[]>> = {
  tool: ['handle_tool_call'],
  channel: ['parse_incoming', 'format_outgoing'],
};
const DESCRIBE = 'describe';

export interface ModuleLimits {
  readonly kind: PluginKind;
  /** Maximum linear memory, MiB. */
  readonly memoryMb: number;
  /** Whether the module may import the HTTP functions. */
  readonly http: boolean;
}

export type ModuleVerdict =
  | {
      readonly accepted: true;
      /** The module with a maximum on each memory and table; these bytes are compiled. */
      readonly bytes: Uint8Array;
      /** Whether the module exports `describe`. */
      readonly describes: boolean;
    }
  | { readonly accepted: false; readonly code: RejectionCode; readonly reason: string };

const checkHeader = (bytes: Uint8Array): void => {
  if (bytes.length > MAX_MODULE_BYTES)
    rejectModule('TOO_LARGE', `the file has ${bytes.length} bytes, the limit is ${MAX_MODULE_BYTES}`);
  const [a, b, c, d, ...version] = bytes.subarray(0, 8);
  if (a !== 0x00 || b !== 0x61 || c !== 0x73 || d !== 0x6d)
    rejectModule('NOT_WASM', 'not a WebAssembly module: bad magic, expected the bytes 00 61 73 6d');
  if (version.join() === '13,0,1,0')
    rejectModule('BAD_VERSION', 'a WebAssembly component; a plug-in is a core module (version 1)');
  if (version.join() !== '1,0,0,0')
    rejectModule('BAD_VERSION', 'unknown WebAssembly version, expected 01 00 00 00');
};

const checkSignature = (entry: ImportEntry, expected: Signature): void => {
  if (entry.kind !== 'function' || entry.signature !== expected)
    rejectModule(
      'IMPORT_NOT_GRANTED',
      `import ${entry.module}.${entry.name} has the type ${entry.signature || entry.kind}, expected ${expected}`,
    );
};

const findGranted = (name: string, http: boolean): Signature | undefined => {
  if (Object.hasOwn(EXTISM_FUNCTIONS, name)) return EXTISM_FUNCTIONS[name];
  return http && Object.hasOwn(HTTP_FUNCTIONS, name) ? HTTP_FUNCTIONS[name] : undefined;
};

const checkImport = (entry: ImportEntry, http: boolean): void => {
  const { module, name } = entry;
  if (module === ABORT.module && name === ABORT.name) return checkSignature(entry, ABORT.signature);
  const expected = module === EXTISM_MODULE ? findGranted(name, http) : undefined;
  if (expected) return checkSignature(entry, expected);
  if (module === EXTISM_MODULE && Object.hasOwn(HTTP_FUNCTIONS, name))
    rejectModule('IMPORT_NOT_GRANTED', `import ${name} not granted: the plug-in has no capability http:HOST`);
  if (module.startsWith('wasi'))
    rejectModule('IMPORT_NOT_GRANTED', `import ${module}.${name} not granted: WASI is disabled`);
  rejectModule('IMPORT_NOT_GRANTED', `import ${module}.${name} (${entry.kind}) not granted`);
};

const checkMemories = ({ memories }: ModuleLayout, memoryMb: number): void => {
  const cap = memoryMb * PAGES_PER_MIB;
  if (memories.length > 1)
    rejectModule('MEMORY_LIMIT', `the module has ${memories.length} memories, at most 1 is allowed`);
  for (const { min, max } of memories) {
    const asked = Math.max(min, max ?? 0);
    if (asked > cap)
      rejectModule(
        'MEMORY_LIMIT',
        `the module's memory of ${min} to ${max ?? 'any number of'} pages is over the limit of ${cap} (memory_mb = ${memoryMb})`,
      );
  }
};

const checkTables = ({ tables }: ModuleLayout): void => {
  if (tables.length > MAX_TABLES)
    rejectModule('TABLE_LIMIT', `the module has ${tables.length} tables, at most ${MAX_TABLES}`);
  for (const { min, max } of tables) {
    const asked = Math.max(min, max ?? 0);
    if (asked > MAX_TABLE_ENTRIES)
      rejectModule('TABLE_LIMIT', `a table of ${asked} entries is over the limit of ${MAX_TABLE_ENTRIES}`);
  }
};

const checkExports = ({ functions }: ModuleLayout, kind: PluginKind): void => {
  for (const name of REQUIRED_EXPORTS[kind])
    if (!functions.has(name))
      rejectModule('EXPORT_MISSING', `${name} missing: a ${kind} plug-in exports it as a function`);
  for (const name of [...REQUIRED_EXPORTS[kind], DESCRIBE]) {
    const signature = functions.get(name);
    if (signature !== undefined && !CALLABLE.includes(signature))
      rejectModule(
        'EXPORT_MISSING',
        `export ${name} has the type ${signature}, expected ${CALLABLE.join(' or ')}`,
      );
  }
};

const validate = (bytes: Uint8Array, { kind, memoryMb, http }: ModuleLimits): ModuleVerdict => {
  checkHeader(bytes);
  const layout = readModuleLayout(bytes);
  for (const entry of layout.imports) checkImport(entry, http);
  checkMemories(layout, memoryMb);
  checkTables(layout);
  checkExports(layout, kind);
  const caps = { memoryPages: memoryMb * PAGES_PER_MIB, tableEntries: MAX_TABLE_ENTRIES };
  return {
    accepted: true,
    bytes: imposeMaximum(bytes, layout, caps),
    describes: layout.functions.has(DESCRIBE),
  };
};

/**
 * Validates a module statically: decides from the bytes alone whether it may be loaded into a cell.
 * Never throws and takes time linear in the file. The engine still validates an accepted module, in
 * a cell.
 */
export const validateModule = (bytes: Uint8Array, limits: ModuleLimits): ModuleVerdict => {
  try {
    return validate(bytes, limits);
  } catch (error) {
    if (error instanceof ModuleRejected) return { accepted: false, code: error.code, reason: error.message };
    throw error;
  }
};
