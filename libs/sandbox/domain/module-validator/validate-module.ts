import { ModuleRejected, rejectModule } from './byte-reader.js';
import type { RejectionCode } from './byte-reader.js';
import {
  ABORT,
  EXTISM_FUNCTIONS,
  EXTISM_MODULE,
  HTTP_FUNCTIONS,
  USER_FUNCTIONS,
  USER_MODULE,
  WASI_FUNCTIONS,
  WASI_MODULE,
} from './host-functions.js';
import { imposeMaximum, readModuleLayout } from './module-layout.js';
import type { ImportEntry, ModuleLayout, Signature } from './module-layout.js';

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
  /** Whether it may import the functions of a capability; none by default. */
  readonly store?: boolean;
  readonly clock?: boolean;
  readonly random?: boolean;
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

const own = (functions: Readonly<Record<string, Signature>>, name: string): Signature | undefined =>
  Object.hasOwn(functions, name) ? functions[name] : undefined;

const refuseImport = ({ module, name, kind }: ImportEntry, why = ''): never =>
  rejectModule(
    'IMPORT_NOT_GRANTED',
    why === '' ? `import ${module}.${name} (${kind}) not granted` : `import ${name} not granted: ${why}`,
  );

/**
 * Kits that build for WASI import the HTTP functions into each module, used or not. The service
 * refuses the requests of such a module if it has no capability.
 */
const findExtismFunction = (entry: ImportEntry, http: boolean): Signature => {
  const page = own(HTTP_FUNCTIONS, entry.name);
  if (page !== undefined && !http) refuseImport(entry, 'the plug-in has no capability http:HOST');
  return page ?? own(EXTISM_FUNCTIONS, entry.name) ?? refuseImport(entry);
};

const USER_CAPABILITIES = Object.keys(USER_FUNCTIONS) as (keyof typeof USER_FUNCTIONS)[];

const findUserFunction = (entry: ImportEntry, limits: ModuleLimits): Signature => {
  for (const capability of USER_CAPABILITIES) {
    const signature = own(USER_FUNCTIONS[capability], entry.name);
    if (signature === undefined) continue;
    if (limits[capability]) return signature;
    const form = capability === 'store' ? 'store:NAME' : capability;
    refuseImport(entry, `the plug-in has no capability ${form}`);
  }
  return refuseImport(entry);
};

const findSignature = (entry: ImportEntry, limits: ModuleLimits): Signature => {
  const { module, name } = entry;
  if (module === ABORT.module && name === ABORT.name) return ABORT.signature;
  if (module === EXTISM_MODULE) return findExtismFunction(entry, limits.http);
  if (module === USER_MODULE) return findUserFunction(entry, limits);
  if (module === WASI_MODULE)
    return own(WASI_FUNCTIONS, name) ?? refuseImport(entry, 'WASI is disabled, but for stubs without files');
  return module.startsWith('wasi') ? refuseImport(entry, 'WASI is disabled') : refuseImport(entry);
};

const checkImports = ({ imports }: ModuleLayout, limits: ModuleLimits): void => {
  const isForWasi = imports.some(({ module, kind }) => module === WASI_MODULE && kind === 'function');
  const granted = isForWasi ? { ...limits, http: true } : limits;
  for (const entry of imports) checkSignature(entry, findSignature(entry, granted));
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

const validate = (bytes: Uint8Array, limits: ModuleLimits): ModuleVerdict => {
  const { kind, memoryMb } = limits;
  checkHeader(bytes);
  const layout = readModuleLayout(bytes);
  checkImports(layout, limits);
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
