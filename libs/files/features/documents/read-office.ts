import { OFFICE_TYPES } from '@antiphon/contracts/agent';
import type { OfficeText } from '../text-work.js';
import { openOffice } from './office-archive.js';
import type { OfficeArchive } from './office-archive.js';
import { readRelations } from './office-relations.js';
import { readSheets } from './read-sheets.js';
import { TextOutput } from './text-output.js';
import { attributeOf, walkXml } from './walk-xml.js';
import type { Attributes, XmlReader } from './walk-xml.js';

const MAX_LEVEL = 6;
/** Maximum number of blanks or empty cells that one element stands for. */
const MAX_REPEATS = 64;

const headingOf = (level: number): string =>
  `${'#'.repeat(Math.min(MAX_LEVEL, Math.max(1, Math.trunc(level) || 1)))} `;

const levelOfStyle = (style: string): number | null => {
  const level = Number(/^heading ?(\d)$/i.exec(style)?.[1]);
  return style === 'Title' ? 1 : level > 0 ? level : null;
};

/** Reads paragraphs of Word and PowerPoint: both have the names p, t, br, tc and tr. */
const paragraphReader = ({ add }: TextOutput): XmlReader => {
  let inText = false;
  let cells = 0;
  return {
    // Tab stops, the older form of a drawing, and the codes of fields are no text.
    skips: new Set(['tabs', 'Fallback', 'instrText']),
    open: (name, attributes) => {
      if (name === 't') inText = true;
      else if (name === 'tc') cells++;
      else if (name === 'tab') add('\t');
      else if (name === 'br' || name === 'cr') add('\n');
      else if (name === 'numPr') add('- ');
      else if (name === 'pStyle') {
        const level = levelOfStyle(attributeOf(attributes, 'val') ?? '');
        if (level !== null) add(headingOf(level));
      }
    },
    close: (name) => {
      if (name === 't') inText = false;
      else if (name === 'p') add(cells > 0 ? ' ' : '\n');
      else if (name === 'tc') {
        cells--;
        add('\t');
      } else if (name === 'tr') add('\n');
    },
    text: (text) => {
      if (inText) add(text);
    },
  };
};

const readWord = ({ parts, main }: OfficeArchive): string =>
  TextOutput.of((output) => {
    for (const part of [main, 'word/footnotes.xml', 'word/endnotes.xml']) {
      const bytes = parts.get(part);
      if (bytes) walkXml(bytes, paragraphReader(output));
      output.add('\n');
    }
  });

const readSlides = ({ parts, main }: OfficeArchive): string => {
  const targets = readRelations(parts, main);
  const slides: string[] = [];
  walkXml(parts.get(main) ?? new Uint8Array(), {
    open: (name, attributes) => {
      if (name === 'sldId') slides.push(targets.get(attributes['r:id'] ?? '') ?? '');
    },
  });
  return TextOutput.of((output) => {
    for (const [index, part] of slides.entries()) {
      const bytes = parts.get(part);
      output.add(`\n[slide ${index + 1}]\n`);
      if (bytes) walkXml(bytes, paragraphReader(output));
    }
  });
};

const repeatsOf = (attributes: Attributes, name: string): number =>
  Math.min(MAX_REPEATS, Math.max(1, Math.trunc(Number(attributeOf(attributes, name) ?? 1)) || 1));

/** Reads texts, sheets and slides of OpenDocument. */
class OpenDocumentReader implements XmlReader {
  readonly skips = new Set(['tracked-changes', 'annotation', 'notes']);
  private paragraphs = 0;
  private slides = 0;
  /** Number of columns of each open cell. */
  private readonly cells: number[] = [];

  constructor(
    private readonly add: TextOutput['add'],
    private readonly mediaType: string,
  ) {}

  readonly open = (name: string, attributes: Attributes): void => {
    const { add } = this;
    if (name === 'p' || name === 'h') this.paragraphs++;
    if (name === 'h') add(headingOf(Number(attributeOf(attributes, 'outline-level'))));
    else if (name === 's') add(' '.repeat(repeatsOf(attributes, 'c')));
    else if (name === 'tab') add('\t');
    else if (name === 'line-break') add('\n');
    else if (name === 'list-item') add('- ');
    else if (name === 'table-cell') this.cells.push(repeatsOf(attributes, 'number-columns-repeated'));
    else if (name === 'page') add(`\n[slide ${++this.slides}]\n`);
    else if (name === 'table' && this.mediaType === OFFICE_TYPES.ods)
      add(`\n[sheet ${attributeOf(attributes, 'name') ?? ''}]\n`);
  };

  readonly close = (name: string): void => {
    const { add } = this;
    if (name === 'p' || name === 'h') {
      this.paragraphs--;
      add(this.cells.length > 0 ? ' ' : '\n');
    } else if (name === 'table-cell') add('\t'.repeat(this.cells.pop() ?? 1));
    else if (name === 'table-row') add('\n');
  };

  readonly text = (text: string): void => {
    if (this.paragraphs > 0) this.add(text);
  };
}

const readOpenDocument = ({ parts, main, mediaType }: OfficeArchive): string =>
  TextOutput.of((output) => {
    walkXml(parts.get(main) ?? new Uint8Array(), new OpenDocumentReader(output.add, mediaType));
  });

const readText = (archive: OfficeArchive): string => {
  if (archive.mediaType === OFFICE_TYPES.docx) return readWord(archive);
  if (archive.mediaType === OFFICE_TYPES.xlsx) return readSheets(archive);
  return archive.mediaType === OFFICE_TYPES.pptx ? readSlides(archive) : readOpenDocument(archive);
};

/**
 * Returns the text of an office file, its problem, or null for another archive. Runs in a thread
 * with a deadline.
 */
export const readOffice = (bytes: Uint8Array): OfficeText | null => {
  try {
    const opened = openOffice(bytes);
    if (opened === null || 'problem' in opened) return opened;
    return { mediaType: opened.mediaType, text: readText(opened) };
  } catch {
    return { problem: 'unreadable', detail: '' };
  }
};
