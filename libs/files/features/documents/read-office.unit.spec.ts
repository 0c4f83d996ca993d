import { describe, expect, it } from '@jest/globals';
import { OFFICE_TYPES } from '@antiphon/contracts/agent';
import {
  archiveOf,
  docxOf,
  docxOfXml,
  openDocumentOf,
  pptxOf,
  xlsxOf,
} from '@antiphon/testing/sample-office';
import { readOffice } from './read-office.js';

const textOf = (bytes: Uint8Array): string => {
  const read = readOffice(bytes);
  if (read === null || 'problem' in read) throw new Error(`no text: ${JSON.stringify(read)}`);
  return read.text;
};
const paragraph = (inner: string): string => `<w:p>${inner}</w:p>`;
const run = (text: string): string => `<w:r><w:t>${text}</w:t></w:r>`;

describe('the text of an office file', () => {
  it('has the paragraphs, headings, lists and tables of a Word file in their order', () => {
    const cell = (text: string): string => `<w:tc>${paragraph(run(text))}</w:tc>`;
    const bytes = docxOfXml(
      [
        paragraph(
          `<w:pPr><w:pStyle w:val="Heading2"/><w:tabs><w:tab/></w:tabs></w:pPr>${run('Tides &amp; ')}${run('winds')}`,
        ),
        paragraph(`<w:pPr><w:numPr/></w:pPr>${run('noon')}<w:r><w:tab/><w:t>high</w:t></w:r>`),
        paragraph(
          '<w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:r><w:instrText>PAGE</w:instrText></w:r>',
        ),
        `<w:tbl><w:tr>${cell('a')}${cell('b')}</w:tr><w:tr>${cell('c')}${cell('d')}</w:tr></w:tbl>`,
        paragraph(run('last')),
      ].join(''),
    );
    expect(readOffice(bytes)).toEqual({
      mediaType: OFFICE_TYPES.docx,
      text: '## Tides & winds\n- noon\thigh\n\na \tb\nc \td\nlast',
    });
  });

  it('has the values of each sheet of an Excel file, in columns, and dates as dates', () => {
    const bytes = xlsxOf({
      Tides: [
        ['day', 'height', 'note'],
        [{ days: 45_000 }, 3.25, ''],
        [{ days: 45_000.5 }, '', 'a < b'],
      ],
      Empty: [],
      'North & south': [['x']],
    });
    expect(textOf(bytes).split('\n')).toEqual([
      ...['[sheet Tides]', 'day\theight\tnote', '2023-03-15\t3.25', '2023-03-15 12:00:00\t\ta < b', ''],
      ...['[sheet Empty]', '', '[sheet North & south]', 'x'],
    ]);
  });

  it('has the slides of a PowerPoint file in the order of the presentation', () => {
    expect(textOf(pptxOf('first', 'second', 'third'))).toBe(
      '[slide 1]\nfirst\n\n[slide 2]\nsecond\n\n[slide 3]\nthird',
    );
  });

  it('has texts, sheets and slides of OpenDocument', () => {
    const text = openDocumentOf(
      'text',
      '<text:h text:outline-level="1">Tides</text:h><text:tracked-changes><text:p>old</text:p></text:tracked-changes>' +
        '<text:p>at<text:s text:c="3"/>noon<text:tab/>high</text:p>',
    );
    expect(readOffice(text)).toEqual({ mediaType: OFFICE_TYPES.odt, text: '# Tides\nat   noon\thigh' });
    const cell = '<table:table-cell><text:p>a</text:p></table:table-cell>';
    const gap = '<table:table-cell table:number-columns-repeated="2"/>';
    const many = '<table:table-cell table:number-columns-repeated="16384"/>';
    const sheet = openDocumentOf(
      'spreadsheet',
      `<table:table table:name="One"><table:table-row>${cell}${gap}${cell}${many}</table:table-row></table:table>`,
    );
    expect(textOf(sheet)).toBe('[sheet One]\na \t\t\ta');
    const slides = openDocumentOf(
      'presentation',
      '<draw:page><text:p>one</text:p></draw:page><draw:page><text:p>two</text:p></draw:page>',
    );
    expect(textOf(slides)).toBe('[slide 1]\none\n\n[slide 2]\ntwo');
  });

  it('is cut at a bound, and says so', () => {
    const text = textOf(docxOf('word '.repeat(900_000)));
    expect(text.length).toBeLessThan(4_000_100);
    expect(text).toMatch(/\[the rest of this document is not read\]$/);
  });
});

describe('an office file that is not read', () => {
  const damage = (bytes: Buffer, from: number): Buffer => {
    const broken = Buffer.from(bytes);
    broken.fill(0xa5, from, from + 200);
    return broken;
  };

  it('is another archive', () => {
    expect(readOffice(archiveOf({ 'readme.txt': 'hello', 'content.xml': '<a/>' }))).toBeNull();
  });

  it('is damaged: cut, with other bytes, or not well formed', () => {
    const whole = docxOf(...Array.from({ length: 200 }, (_, n) => `paragraph ${n * 7_919}`));
    const at = whole.indexOf('word/document.xml') + 60;
    for (const bytes of [whole.subarray(0, 400), damage(whole, at), docxOfXml('<w:p><w:t>open')])
      expect(readOffice(bytes)).toEqual({ problem: 'unreadable', detail: '' });
  });

  it('has a document type, which could define entities or name other files', () => {
    const head = '<!DOCTYPE w [<!ENTITY secret SYSTEM "file:///etc/passwd">]>';
    expect(readOffice(docxOfXml(paragraph(run('&secret;')), head))).toEqual({
      problem: 'unreadable',
      detail: '',
    });
    expect(readOffice(docxOfXml(paragraph(run('&secret;'))))).toMatchObject({ problem: 'unreadable' });
  });

  it('is nested deeper than any document', () => {
    const deep = '<w:p>'.repeat(20_000) + '</w:p>'.repeat(20_000);
    expect(readOffice(docxOfXml(deep))).toMatchObject({ problem: 'unreadable' });
  });

  it('is encrypted', () => {
    const bytes = archiveOf({
      mimetype: OFFICE_TYPES.odt,
      'content.xml': 'cipher',
      'META-INF/manifest.xml': '<manifest><encryption-data/></manifest>',
    });
    expect(readOffice(bytes)).toEqual({ problem: 'encrypted', detail: '' });
  });
});

describe('an archive that unpacks to far more than it has', () => {
  const MIB = 1_024 * 1_024;
  /** Sets the unpacked size that the directory of an archive declares for a part. */
  const declare = (bytes: Buffer, part: string, size: number): Buffer => {
    const changed = Buffer.from(bytes);
    const name = changed.lastIndexOf(part);
    changed.writeUInt32LE(size, name - 46 + 24);
    return changed;
  };
  const bomb = docxOfXml(' '.repeat(80 * MIB));

  it('is refused before it is unpacked', () => {
    expect(bomb.length).toBeLessThan(MIB / 2);
    const before = process.memoryUsage().arrayBuffers;
    expect(readOffice(bomb)).toEqual({ problem: 'unpacked_too_large', detail: 64 * MIB });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * MIB);
  });

  it('gets no more bytes than it declares', () => {
    const before = process.memoryUsage().arrayBuffers;
    expect(readOffice(declare(bomb, 'word/document.xml', 1_000))).toMatchObject({ problem: 'unreadable' });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * MIB);
  });

  it('gets no large part that has the name of a small one', () => {
    const odt = {
      mimetype: OFFICE_TYPES.odt,
      'content.xml': '<t><p>text</p></t>',
      mimetypo: ' '.repeat(24 * MIB),
    };
    const bytes = Buffer.from(archiveOf(odt).toString('latin1').replaceAll('mimetypo', 'mimetype'), 'latin1');
    const before = process.memoryUsage().arrayBuffers;
    expect(textOf(bytes)).toBe('text');
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * MIB);
  });

  it('is refused for the number of its parts', () => {
    const parts = Object.fromEntries(Array.from({ length: 5_001 }, (_, n) => [`word/media/${n}.png`, '']));
    expect(readOffice(archiveOf({ ...parts, 'word/document.xml': '<a/>' }))).toEqual({
      problem: 'too_many_parts',
      detail: 5_000,
    });
  });

  it('leaves its pictures packed', () => {
    const parts = { 'word/media/huge.png': ' '.repeat(24 * MIB), 'word/document.xml': '<w:t>text</w:t>' };
    const bytes = archiveOf(parts);
    const before = process.memoryUsage().arrayBuffers;
    expect(textOf(bytes)).toBe('text');
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * MIB);
  });
});
