import { createByteReader, refuse } from './byte-reader.js';
import type { ByteReader } from './byte-reader.js';

/** `(i64,i64)->(i64)`: a function type as text, which is all that the gate compares. */
export type Signature = string;

export interface Limits {
  readonly min: number;
  /** Null when the module declares none. */
  readonly max: number | null;
}
export interface ImportEntry {
  readonly module: string;
  readonly name: string;
  readonly kind: 'function' | 'table' | 'memory' | 'global' | 'tag';
  /** Of a function, else empty. */
  readonly signature: Signature;
}
export interface TableEntry extends Limits {
  readonly elementType: number;
}
/** A section's place in the file: from its id byte to one past its end. */
export interface SectionSpan {
  readonly start: number;
  readonly end: number;
}

/** What the gate looks at; code, data and names are left to the engine's own validation, in a cell. */
export interface ModuleLayout {
  readonly imports: readonly ImportEntry[];
  readonly tables: readonly TableEntry[];
  readonly memories: readonly Limits[];
  /** Exported functions by name. */
  readonly functions: ReadonlyMap<string, Signature>;
  readonly spans: { readonly table: SectionSpan | null; readonly memory: SectionSpan | null };
}

const SECTION = { type: 1, import: 2, function: 3, table: 4, memory: 5, export: 7 } as const;
/** The order that the specification demands; 12 (data count) and 13 (tags) came later than their places. */
const SECTION_ORDER = [1, 2, 3, 4, 5, 13, 6, 7, 8, 9, 12, 10, 11];
const IMPORT_KINDS = ['function', 'table', 'memory', 'global', 'tag'] as const;
const VALUE_TYPES: Readonly<Record<number, string>> = {
  0x7f: 'i32',
  0x7e: 'i64',
  0x7d: 'f32',
  0x7c: 'f64',
  0x7b: 'v128',
  0x70: 'funcref',
  0x6f: 'externref',
};

const hex = (value: number): string => `0x${value.toString(16).padStart(2, '0')}`;

const entries = <T>(reader: ByteReader, read: (reader: ByteReader) => T): T[] => {
  const list: T[] = [];
  for (let left = reader.count(); left > 0; left--) list.push(read(reader));
  if (!reader.atEnd())
    refuse('MALFORMED', `bytes after the last entry of a section, at byte ${reader.offset()}`);
  return list;
};

const readValueTypes = (reader: ByteReader): string => {
  const names: string[] = [];
  for (let left = reader.count(); left > 0; left--) {
    const code = reader.byte();
    names.push(VALUE_TYPES[code] ?? refuse('UNSUPPORTED', `value type ${hex(code)} is not supported`));
  }
  return `(${names.join(',')})`;
};

const readFunctionType = (reader: ByteReader): Signature => {
  const form = reader.byte();
  // Garbage-collected types live on the JavaScript heap, outside the memory limit of a plug-in.
  if (form !== 0x60) refuse('UNSUPPORTED', `type form ${hex(form)} is not supported, only functions are`);
  return `${readValueTypes(reader)}->${readValueTypes(reader)}`;
};

const readLimits = (reader: ByteReader, what: 'memory' | 'table'): Limits => {
  const flags = reader.byte();
  if (flags === 2 || flags === 3) refuse('UNSUPPORTED', `a shared ${what} is not allowed`);
  if (flags > 3) refuse('UNSUPPORTED', `a ${what} with limit flags ${hex(flags)} is not supported`);
  const min = reader.u32();
  return { min, max: flags === 1 ? reader.u32() : null };
};

const readTable = (reader: ByteReader): TableEntry => {
  const elementType = reader.byte();
  if (elementType !== 0x70 && elementType !== 0x6f)
    refuse('UNSUPPORTED', `a table of element type ${hex(elementType)} is not supported`);
  return { elementType, ...readLimits(reader, 'table') };
};

const typeAt = (types: readonly Signature[], index: number): Signature =>
  types[index] ?? refuse('MALFORMED', `there is no type ${index}`);

const readImport =
  (types: readonly Signature[]) =>
  (reader: ByteReader): ImportEntry => {
    const module = reader.name();
    const name = reader.name();
    const code = reader.byte();
    const kind = IMPORT_KINDS[code] ?? refuse('MALFORMED', `an import of unknown kind ${hex(code)}`);
    if (kind === 'function') return { module, name, kind, signature: typeAt(types, reader.u32()) };
    // Its shape does not matter: nothing but functions is ever granted.
    if (kind === 'table') readTable(reader);
    else if (kind === 'memory') readLimits(reader, 'memory');
    else {
      reader.byte();
      reader.skipLeb();
    }
    return { module, name, kind, signature: '' };
  };

type Sections = ReadonlyMap<number, { readonly body: ByteReader; readonly span: SectionSpan }>;

const splitSections = (bytes: Uint8Array): Sections => {
  const reader = createByteReader(bytes, 8);
  const sections = new Map<number, { body: ByteReader; span: SectionSpan }>();
  let place = -1;
  while (!reader.atEnd()) {
    const start = reader.offset();
    const id = reader.byte();
    const body = reader.slice(reader.u32());
    if (id === 0) continue; // custom sections mean nothing to the engine
    const next = SECTION_ORDER.indexOf(id);
    // Two memory sections, say, could leave this reader and the engine with different limits.
    if (next <= place)
      refuse('MALFORMED', `section ${id} at byte ${start} is unknown, repeated or out of order`);
    place = next;
    sections.set(id, { body, span: { start, end: reader.offset() } });
  }
  return sections;
};

const readExports = (
  section: ByteReader | undefined,
  functions: readonly Signature[],
): Map<string, Signature> => {
  const exported = new Map<string, Signature>();
  if (section === undefined) return exported;
  entries(section, (reader) => {
    const name = reader.name();
    const kind = reader.byte();
    const index = reader.u32();
    if (kind === 0)
      exported.set(name, functions[index] ?? refuse('MALFORMED', `there is no function ${index}`));
  });
  return exported;
};

/** Reads a module whose magic and version are known to be right; throws `GateRefusal` and nothing else. */
export const readModuleLayout = (bytes: Uint8Array): ModuleLayout => {
  const sections = splitSections(bytes);
  const read = <T>(id: number, entry: (reader: ByteReader) => T): T[] => {
    const section = sections.get(id);
    return section === undefined ? [] : entries(section.body, entry);
  };
  const types = read(SECTION.type, readFunctionType);
  const imports = read(SECTION.import, readImport(types));
  const imported = imports.filter((entry) => entry.kind === 'function').map((entry) => entry.signature);
  const defined = read(SECTION.function, (reader) => typeAt(types, reader.u32()));
  const tables = read(SECTION.table, readTable);
  const memories = read(SECTION.memory, (reader) => readLimits(reader, 'memory'));
  const spanOf = (id: number): SectionSpan | null => sections.get(id)?.span ?? null;
  return {
    imports,
    tables,
    memories,
    functions: readExports(sections.get(SECTION.export)?.body, [...imported, ...defined]),
    spans: { table: spanOf(SECTION.table), memory: spanOf(SECTION.memory) },
  };
};
