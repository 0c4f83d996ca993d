import type { OfficeArchive } from './office-archive.js';
import { readRelations } from './office-relations.js';
import { TextOutput } from './text-output.js';
import { attributeOf, walkXml } from './walk-xml.js';

/** Numbers of the formats of dates and times that every program knows. */
const isBuiltInDate = (id: number): boolean =>
  (id >= 14 && id <= 22) || (id >= 27 && id <= 36) || (id >= 45 && id <= 47) || (id >= 50 && id <= 58);

/** Returns true if a format of numbers has a part of a date outside of its texts. */
const isDateFormat = (format: string): boolean => {
  let until = '';
  for (let at = 0; at < format.length; at++) {
    const char = format.charAt(at);
    if (until !== '') {
      if (char === until) until = '';
    } else if (char === '"') until = '"';
    else if (char === '[') until = ']';
    else if (char === '\\') at++;
    else if (/[ymdhs]/i.test(char)) return true;
  }
  return false;
};

/** Returns for each style of a cell whether its number is a date. */
const readDateStyles = (bytes: Uint8Array | undefined): boolean[] => {
  const styles: boolean[] = [];
  const custom = new Set<number>();
  let inCells = false;
  if (!bytes) return styles;
  walkXml(bytes, {
    open: (name, attributes) => {
      const id = Number(attributes['numFmtId']);
      if (name === 'numFmt' && isDateFormat(attributes['formatCode'] ?? '')) custom.add(id);
      if (name === 'cellXfs') inCells = true;
      if (name === 'xf' && inCells) styles.push(custom.has(id) || isBuiltInDate(id));
    },
    close: (name) => {
      if (name === 'cellXfs') inCells = false;
    },
  });
  return styles;
};

const readSharedStrings = (bytes: Uint8Array | undefined): string[] => {
  const strings: string[] = [];
  let inText = false;
  if (!bytes) return strings;
  walkXml(bytes, {
    skips: new Set(['rPh']),
    open: (name) => {
      if (name === 'si') strings.push('');
      inText = name === 't';
    },
    close: () => {
      inText = false;
    },
    text: (text) => {
      if (inText) strings.push((strings.pop() ?? '') + text);
    },
  });
  return strings;
};

interface Workbook {
  readonly sheets: { readonly name: string; readonly id: string }[];
  /** Days between 1899-12-30 and the first day of the workbook. */
  readonly firstDay: number;
}

const readWorkbook = (bytes: Uint8Array | undefined): Workbook => {
  const sheets: Workbook['sheets'] = [];
  let firstDay = 0;
  if (!bytes) return { sheets, firstDay };
  walkXml(bytes, {
    open: (name, attributes) => {
      if (name === 'sheet')
        sheets.push({ name: attributes['name'] ?? '', id: attributeOf(attributes, 'id') ?? '' });
      if (name === 'workbookPr' && ['1', 'true'].includes(attributes['date1904'] ?? '')) firstDay = 1_462;
    },
  });
  return { sheets, firstDay };
};

const DAY_MS = 86_400_000;
const EPOCH = Date.UTC(1899, 11, 30);
/** Number of 9999-12-31. */
const LAST_DAY = 2_958_465;

/** Returns the date of a number of days, its time, or both. */
const formatDate = (value: string, firstDay: number): string => {
  const days = Number(value) + firstDay;
  if (!(days >= 0 && days <= LAST_DAY)) return value;
  const iso = new Date(EPOCH + Math.round(days * 86_400) * 1_000).toISOString();
  const time = iso.slice(11, 19);
  if (days < 1) return time;
  return (days * DAY_MS) % DAY_MS === 0 ? iso.slice(0, 10) : `${iso.slice(0, 10)} ${time}`;
};

/** Returns the number of the column of a place such as "B2", from 0; null without one. */
const columnOf = (place: string | undefined): number | null => {
  let column = 0;
  for (const char of place ?? '') {
    const digit = char.charCodeAt(0) - 64;
    if (digit < 1 || digit > 26) break;
    column = column * 26 + digit;
  }
  return column === 0 || column > 16_384 ? null : column - 1;
};

interface SheetContext {
  readonly strings: readonly string[];
  readonly dates: readonly boolean[];
  readonly firstDay: number;
}

/** Writes the rows of a sheet, with tabs between columns. */
class SheetWriter {
  private column = 0;
  private isEmptyRow = true;
  private cell = { type: '', style: 0, value: '' };
  private inValue = false;

  constructor(
    private readonly context: SheetContext,
    private readonly output: TextOutput,
  ) {}

  readonly open = (name: string, attributes: Readonly<Record<string, string>>): void => {
    if (name === 'row') [this.column, this.isEmptyRow] = [0, true];
    if (name === 'c') {
      this.cell = { type: attributes['t'] ?? 'n', style: Number(attributes['s'] ?? 0), value: '' };
      const column = columnOf(attributes['r']) ?? this.column;
      if (column > this.column) this.output.add('\t'.repeat(column - this.column));
      this.column = Math.max(this.column, column);
    }
    if (name === 'v' || name === 't') this.inValue = true;
  };

  readonly text = (text: string): void => {
    if (this.inValue) this.cell.value += text;
  };

  readonly close = (name: string): void => {
    if (name === 'v' || name === 't') this.inValue = false;
    if (name === 'c' && this.cell.value !== '') {
      this.output.add(this.shown().replaceAll(/[\t\r\n]/g, ' '));
      this.isEmptyRow = false;
    }
    if (name === 'row' && !this.isEmptyRow) this.output.add('\n');
  };

  private shown(): string {
    const { type, style, value } = this.cell;
    if (type === 's') return this.context.strings[Number(value)] ?? '';
    if (type === 'b') return value === '1' ? 'TRUE' : 'FALSE';
    return type === 'n' && this.context.dates[style] ? formatDate(value, this.context.firstDay) : value;
  }
}

/** Returns the text of all sheets of a workbook: the values, and not the formulas. */
export const readSheets = ({ parts, main }: OfficeArchive): string => {
  const { sheets, firstDay } = readWorkbook(parts.get(main));
  const targets = readRelations(parts, main);
  const context = {
    strings: readSharedStrings(parts.get('xl/sharedStrings.xml')),
    dates: readDateStyles(parts.get('xl/styles.xml')),
    firstDay,
  };
  return TextOutput.of((output) => {
    for (const { name, id } of sheets) {
      const bytes = parts.get(targets.get(id) ?? '');
      if (!bytes) continue;
      output.add(`\n[sheet ${name}]\n`);
      const { open, close, text } = new SheetWriter(context, output);
      walkXml(bytes, { open, close, text, skips: new Set(['rPh', 'f']) });
      output.add('\n');
    }
  });
};
