import { ByteReader, rejectModule } from './byte-reader.js';

/** Function type as text, for example `(i64,i64)->(i64)`. */
export type Signature = string;

export interface Limits {
  readonly min: number;
  /** Null when the module declares no maximum. */
  readonly max: number | null;
}
export interface ImportEntry {
  readonly module: string;
  readonly name: string;
  readonly kind: 'function' | 'table' | 'memory' | 'global' | 'tag';
  /** Type of a function; empty for other kinds. */
  readonly signature: Signature;
}
export interface TableEntry extends Limits {
  readonly elementType: number;
}
/** Position of a section in the file, from its id byte to one past its end. */
export interface SectionSpan {
  readonly start: number;
  readonly end: number;
}

/**
 * Parts of a module that the validator checks. The engine validates code, data and names later, in
 * a cell.
 */
export interface ModuleLayout {
  readonly imports: readonly ImportEntry[];
  readonly tables: readonly TableEntry[];
  readonly memories: readonly Limits[];
  /** Exported functions by name. */
  readonly functions: ReadonlyMap<string, Signature>;
  readonly spans: { readonly table: SectionSpan | null; readonly memory: SectionSpan | null };
}

const SECTION = { type: 1, import: 2, function: 3, table: 4, memory: 5, export: 7 } as const;
/**
 * Order of sections that the specification requires. 12 (data count) and 13 (tags) were added
 * later, between older sections.
 */
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

const readEntries = <T>(reader: ByteReader, read: (reader: ByteReader) => T): T[] => {
  const list: T[] = [];
  for (let left = reader.count(); left > 0; left--) list.push(read(reader));
  if (!reader.isAtEnd)
    rejectModule('MALFORMED', `bytes after the last entry of a section, at byte ${reader.offset}`);
  return list;
};

const readValueTypes = (reader: ByteReader): string => {
  const names: string[] = [];
  for (let left = reader.count(); left > 0; left--) {
    const code = reader.byte();
    names.push(VALUE_TYPES[code] ?? rejectModule('UNSUPPORTED', `value type ${hex(code)} is not supported`));
  }
  return `(${names.join(',')})`;
};

const readFunctionType = (reader: ByteReader): Signature => {
  const form = reader.byte();
  // Garbage-collected types live on the JavaScript heap, outside the memory limit of a plug-in.
  if (form !== 0x60)
    rejectModule('UNSUPPORTED', `type form ${hex(form)} is not supported, only functions are`);
  return `${readValueTypes(reader)}->${readValueTypes(reader)}`;
};

const readLimits = (reader: ByteReader, subject: 'memory' | 'table'): Limits => {
  const flags = reader.byte();
  if (flags === 2 || flags === 3) rejectModule('UNSUPPORTED', `a shared ${subject} is not allowed`);
  if (flags > 3) rejectModule('UNSUPPORTED', `a ${subject} with limit flags ${hex(flags)} is not supported`);
  const min = reader.u32();
  return { min, max: flags === 1 ? reader.u32() : null };
};

const readTable = (reader: ByteReader): TableEntry => {
  const elementType = reader.byte();
  if (elementType !== 0x70 && elementType !== 0x6f)
    rejectModule('UNSUPPORTED', `a table of element type ${hex(elementType)} is not supported`);
  return { elementType, ...readLimits(reader, 'table') };
};

const typeAt = (types: readonly Signature[], index: number): Signature =>
  types[index] ?? rejectModule('MALFORMED', `there is no type ${index}`);

const readImport =
  (types: readonly Signature[]) =>
  (reader: ByteReader): ImportEntry => {
    const module = reader.name();
    const name = reader.name();
    const code = reader.byte();
    const kind = IMPORT_KINDS[code] ?? rejectModule('MALFORMED', `an import of unknown kind ${hex(code)}`);
    if (kind === 'function') return { module, name, kind, signature: typeAt(types, reader.u32()) };
    // Only functions are ever granted, so the shape of other imports does not matter.
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
  const reader = new ByteReader(bytes, 8);
  const sections = new Map<number, { body: ByteReader; span: SectionSpan }>();
  let last = -1;
  while (!reader.isAtEnd) {
    const start = reader.offset;
    const id = reader.byte();
    const body = reader.slice(reader.u32());
    if (id === 0) continue; // the engine ignores custom sections
    const next = SECTION_ORDER.indexOf(id);
    // With two memory sections, this reader and the engine could see different limits.
    if (next <= last)
      rejectModule('MALFORMED', `section ${id} at byte ${start} is unknown, repeated or out of order`);
    last = next;
    sections.set(id, { body, span: { start, end: reader.offset } });
  }
  return sections;
};

const readExports = (
  section: ByteReader | undefined,
  functions: readonly Signature[],
): Map<string, Signature> => {
  const exported = new Map<string, Signature>();
  if (section === undefined) return exported;
  readEntries(section, (reader) => {
    const name = reader.name();
    const kind = reader.byte();
    const index = reader.u32();
    if (kind === 0)
      exported.set(name, functions[index] ?? rejectModule('MALFORMED', `there is no function ${index}`));
  });
  return exported;
};

/** Reads a module with a correct header. Throws `ModuleRejected` and nothing else. */
export const readModuleLayout = (bytes: Uint8Array): ModuleLayout => {
  const sections = splitSections(bytes);
  const read = <T>(id: number, entry: (reader: ByteReader) => T): T[] => {
    const section = sections.get(id);
    return section === undefined ? [] : readEntries(section.body, entry);
  };
  const types = read(SECTION.type, readFunctionType);
  const imports = read(SECTION.import, readImport(types));
  const imported = imports.filter((entry) => entry.kind === 'function').map((entry) => entry.signature);
  const defined = read(SECTION.function, (reader) => typeAt(types, reader.u32()));
  const tables = read(SECTION.table, readTable);
  const memories = read(SECTION.memory, (reader) => readLimits(reader, 'memory'));
  const findSpan = (id: number): SectionSpan | null => sections.get(id)?.span ?? null;
  return {
    imports,
    tables,
    memories,
    functions: readExports(sections.get(SECTION.export)?.body, [...imported, ...defined]),
    spans: { table: findSpan(SECTION.table), memory: findSpan(SECTION.memory) },
  };
};

const encodeLeb = (value: number): number[] => {
  const out: number[] = [];
  let rest = value;
  do {
    const low = rest % 128;
    rest = Math.floor(rest / 128);
    out.push(rest > 0 ? low | 0x80 : low);
  } while (rest > 0);
  return out;
};

const encodeSection = (id: number, entries: readonly number[][]): Uint8Array => {
  const body = [...encodeLeb(entries.length), ...entries.flat()];
  return Uint8Array.from([id, ...encodeLeb(body.length), ...body]);
};

const replaceSpan = (bytes: Uint8Array, span: SectionSpan, replacement: Uint8Array): Uint8Array => {
  const out = new Uint8Array(bytes.length - (span.end - span.start) + replacement.length);
  out.set(bytes.subarray(0, span.start));
  out.set(replacement, span.start);
  out.set(bytes.subarray(span.end), span.start + replacement.length);
  return out;
};

/**
 * Writes a maximum into each memory and table that declares none; most toolchains leave it out.
 * Growth beyond the maximum then fails as the specification says.
 */
export const imposeMaximum = (
  bytes: Uint8Array,
  layout: ModuleLayout,
  caps: { readonly memoryPages: number; readonly tableEntries: number },
): Uint8Array => {
  const { table, memory } = layout.spans;
  let out = bytes;
  // The memory section follows the table section: replaced first, it leaves the table's span valid.
  if (memory !== null && layout.memories.some((entry) => entry.max === null))
    out = replaceSpan(
      out,
      memory,
      encodeSection(
        5,
        layout.memories.map((entry) => [
          1,
          ...encodeLeb(entry.min),
          ...encodeLeb(entry.max ?? caps.memoryPages),
        ]),
      ),
    );
  if (table !== null && layout.tables.some((entry) => entry.max === null))
    out = replaceSpan(
      out,
      table,
      encodeSection(
        4,
        layout.tables.map((t) => [
          t.elementType,
          1,
          ...encodeLeb(t.min),
          ...encodeLeb(t.max ?? caps.tableEntries),
        ]),
      ),
    );
  return out;
};
