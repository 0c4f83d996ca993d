import type { ModuleLayout, SectionSpan } from './module-layout.js';

const leb = (value: number): number[] => {
  const out: number[] = [];
  let rest = value;
  do {
    const low = rest % 128;
    rest = Math.floor(rest / 128);
    out.push(rest > 0 ? low | 0x80 : low);
  } while (rest > 0);
  return out;
};

const section = (id: number, entries: readonly number[][]): Uint8Array => {
  const body = [...leb(entries.length), ...entries.flat()];
  return Uint8Array.from([id, ...leb(body.length), ...body]);
};

const replace = (bytes: Uint8Array, span: SectionSpan, by: Uint8Array): Uint8Array => {
  const out = new Uint8Array(bytes.length - (span.end - span.start) + by.length);
  out.set(bytes.subarray(0, span.start));
  out.set(by, span.start);
  out.set(bytes.subarray(span.end), span.start + by.length);
  return out;
};

/**
 * Writes a maximum into each memory and table that declares none, so that in the bytes which run a maximum is
 * always present: most toolchains leave it out, and growth beyond it then fails as the specification says.
 */
export const imposeMaximum = (
  bytes: Uint8Array,
  layout: ModuleLayout,
  caps: { readonly memoryPages: number; readonly tableEntries: number },
): Uint8Array => {
  const { table, memory } = layout.spans;
  let out = bytes;
  // The memory section lies behind the table section, so its span is still right when it goes first.
  if (memory !== null && layout.memories.some((entry) => entry.max === null))
    out = replace(
      out,
      memory,
      section(
        5,
        layout.memories.map((entry) => [1, ...leb(entry.min), ...leb(entry.max ?? caps.memoryPages)]),
      ),
    );
  if (table !== null && layout.tables.some((entry) => entry.max === null))
    out = replace(
      out,
      table,
      section(
        4,
        layout.tables.map((t) => [t.elementType, 1, ...leb(t.min), ...leb(t.max ?? caps.tableEntries)]),
      ),
    );
  return out;
};
