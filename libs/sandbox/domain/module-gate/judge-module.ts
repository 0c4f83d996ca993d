import { GateRefusal, refuse } from './byte-reader.js';
import type { GateCode } from './byte-reader.js';
import { ABORT, EXTISM_FUNCTIONS, EXTISM_MODULE, HTTP_FUNCTIONS } from './extism-imports.js';
import { imposeMaximum } from './impose-maximum.js';
import { readModuleLayout } from './module-layout.js';
import type { ImportEntry, ModuleLayout, Signature } from './module-layout.js';

export type PluginKind = 'tool' | 'channel';

export const MAX_MODULE_BYTES = 10 * 1024 * 1024;
export const MAX_TABLE_ENTRIES = 65_536;
const MAX_TABLES = 16;
const PAGES_PER_MIB = 16;

/** Extism's own rule for a callable export: no parameters, and a status or nothing as the result. */
const CALLABLE: readonly Signature[] = ['()->(i32)', '()->()'];
const REQUIRED_EXPORTS: Readonly<Record<PluginKind, readonly string[]>> = {
  tool: ['handle_tool_call'],
  channel: ['parse_incoming', 'format_outgoing'],
};
const DESCRIBE = 'describe';

export interface GateLimits {
  readonly kind: PluginKind;
  /** MiB of linear memory. */
  readonly memoryMb: number;
  /** Whether it may import the functions of HTTP. */
  readonly http: boolean;
}

export type Verdict =
  | {
      readonly accepted: true;
      /** What is compiled: the module with a maximum on each memory and table. */
      readonly bytes: Uint8Array;
      readonly describes: boolean;
    }
  | { readonly accepted: false; readonly code: GateCode; readonly reason: string };

const checkHeader = (bytes: Uint8Array): void => {
  if (bytes.length > MAX_MODULE_BYTES)
    refuse('TOO_LARGE', `the file has ${bytes.length} bytes, the limit is ${MAX_MODULE_BYTES}`);
  const [a, b, c, d, ...version] = bytes.subarray(0, 8);
  if (a !== 0x00 || b !== 0x61 || c !== 0x73 || d !== 0x6d)
    refuse('NOT_WASM', 'not a WebAssembly module: bad magic, expected the bytes 00 61 73 6d');
  if (version.join() === '13,0,1,0')
    refuse('BAD_VERSION', 'a WebAssembly component; a plug-in is a core module (version 1)');
  if (version.join() !== '1,0,0,0')
    refuse('BAD_VERSION', 'unknown WebAssembly version, expected 01 00 00 00');
};

const checkSignature = (entry: ImportEntry, expected: Signature): void => {
  if (entry.kind !== 'function' || entry.signature !== expected)
    refuse(
      'IMPORT_NOT_GRANTED',
      `import ${entry.module}.${entry.name} has the type ${entry.signature || entry.kind}, expected ${expected}`,
    );
};

const granted = (name: string, http: boolean): Signature | undefined => {
  if (Object.hasOwn(EXTISM_FUNCTIONS, name)) return EXTISM_FUNCTIONS[name];
  return http && Object.hasOwn(HTTP_FUNCTIONS, name) ? HTTP_FUNCTIONS[name] : undefined;
};

const checkImport = (entry: ImportEntry, http: boolean): void => {
  const { module, name } = entry;
  if (module === ABORT.module && name === ABORT.name) return checkSignature(entry, ABORT.signature);
  const expected = module === EXTISM_MODULE ? granted(name, http) : undefined;
  if (expected) return checkSignature(entry, expected);
  if (module === EXTISM_MODULE && Object.hasOwn(HTTP_FUNCTIONS, name))
    refuse('IMPORT_NOT_GRANTED', `import ${name} not granted: the plug-in has no capability http:HOST`);
  if (module.startsWith('wasi'))
    refuse('IMPORT_NOT_GRANTED', `import ${module}.${name} not granted: WASI is disabled`);
  refuse('IMPORT_NOT_GRANTED', `import ${module}.${name} (${entry.kind}) not granted`);
};

const checkMemories = ({ memories }: ModuleLayout, memoryMb: number): void => {
  const cap = memoryMb * PAGES_PER_MIB;
  if (memories.length > 1)
    refuse('MEMORY_LIMIT', `the module has ${memories.length} memories, at most 1 is allowed`);
  for (const { min, max } of memories) {
    const asked = Math.max(min, max ?? 0);
    if (asked > cap)
      refuse(
        'MEMORY_LIMIT',
        `the module's memory of ${min} to ${max ?? 'any number of'} pages is over the limit of ${cap} (memory_mb = ${memoryMb})`,
      );
  }
};

const checkTables = ({ tables }: ModuleLayout): void => {
  if (tables.length > MAX_TABLES)
    refuse('TABLE_LIMIT', `the module has ${tables.length} tables, at most ${MAX_TABLES}`);
  for (const { min, max } of tables) {
    const asked = Math.max(min, max ?? 0);
    if (asked > MAX_TABLE_ENTRIES)
      refuse('TABLE_LIMIT', `a table of ${asked} entries is over the limit of ${MAX_TABLE_ENTRIES}`);
  }
};

const checkExports = ({ functions }: ModuleLayout, kind: PluginKind): void => {
  for (const name of REQUIRED_EXPORTS[kind])
    if (!functions.has(name))
      refuse('EXPORT_MISSING', `${name} missing: a ${kind} plug-in exports it as a function`);
  for (const name of [...REQUIRED_EXPORTS[kind], DESCRIBE]) {
    const signature = functions.get(name);
    if (signature !== undefined && !CALLABLE.includes(signature))
      refuse('EXPORT_MISSING', `export ${name} has the type ${signature}, expected ${CALLABLE.join(' or ')}`);
  }
};

const judge = (bytes: Uint8Array, { kind, memoryMb, http }: GateLimits): Verdict => {
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
 * The static gate: decides from the bytes alone whether a module may be handed to a cell at all.
 * It never throws and takes time linear in the file; what it accepts the engine still validates, in a cell.
 */
export const judgeModule = (bytes: Uint8Array, limits: GateLimits): Verdict => {
  try {
    return judge(bytes, limits);
  } catch (error) {
    if (error instanceof GateRefusal) return { accepted: false, code: error.code, reason: error.message };
    throw error;
  }
};
