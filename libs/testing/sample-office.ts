import { strToU8, zipSync } from 'fflate';

const XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const escapeXml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');

/** Returns an archive of texts by their names. */
export const archiveOf = (parts: Readonly<Record<string, string>>): Buffer =>
  Buffer.from(
    zipSync(Object.fromEntries(Object.entries(parts).map(([name, text]) => [name, strToU8(text)]))),
  );

const CONTENT_TYPES = {
  '[Content_Types].xml': `${XML}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`,
};
const WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"';
const RELATIONS = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';

/** Returns a Word file with a body in its XML. */
export const docxOfXml = (body: string, head = ''): Buffer =>
  archiveOf({
    ...CONTENT_TYPES,
    'word/document.xml': `${XML}${head}<w:document ${WORD}><w:body>${body}</w:body></w:document>`,
  });

/** Returns a Word file with a paragraph for each text. */
export const docxOf = (...paragraphs: readonly string[]): Buffer =>
  docxOfXml(
    paragraphs
      .map((text) => `<w:p><w:r><w:t xml:space="preserve">${escapeXml(text)}</w:t></w:r></w:p>`)
      .join(''),
  );

/** Cells of a row: a text, a number, or a date as the number of its days. */
export type SampleCell = string | number | { readonly days: number };

const cellXml = (cell: SampleCell, index: number, row: number, strings: string[]): string => {
  const place = `r="${String.fromCharCode(65 + index)}${row + 1}"`;
  if (typeof cell === 'number') return `<c ${place}><v>${cell}</v></c>`;
  if (typeof cell !== 'string') return `<c ${place} s="1"><v>${cell.days}</v></c>`;
  if (cell === '') return '';
  return `<c ${place} t="s"><v>${strings.push(cell) - 1}</v></c>`;
};

/** Returns an Excel file with the rows of each sheet. */
export const xlsxOf = (sheets: Readonly<Record<string, readonly (readonly SampleCell[])[]>>): Buffer => {
  const strings: string[] = [];
  const names = Object.keys(sheets);
  const parts = Object.values(sheets).map((rows, index) => {
    const xml = rows
      .map(
        (row, at) =>
          `<row r="${at + 1}">${row.map((cell, column) => cellXml(cell, column, at, strings)).join('')}</row>`,
      )
      .join('');
    return [
      `xl/worksheets/sheet${index + 1}.xml`,
      `${XML}<worksheet><sheetData>${xml}</sheetData></worksheet>`,
    ];
  });
  const list = names.map(
    (name, at) => `<sheet name="${escapeXml(name)}" sheetId="${at + 1}" r:id="r${at + 1}"/>`,
  );
  const targets = names.map(
    (_, at) => `<Relationship Id="r${at + 1}" Target="worksheets/sheet${at + 1}.xml"/>`,
  );
  return archiveOf({
    ...CONTENT_TYPES,
    'xl/workbook.xml': `${XML}<workbook xmlns:r="${RELATIONS}"><sheets>${list.join('')}</sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': `${XML}<Relationships>${targets.join('')}</Relationships>`,
    'xl/styles.xml': `${XML}<styleSheet><cellStyleXfs><xf numFmtId="0"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>`,
    ...(Object.fromEntries(parts) as Record<string, string>),
    'xl/sharedStrings.xml': `${XML}<sst>${strings.map((text) => `<si><t>${escapeXml(text)}</t></si>`).join('')}</sst>`,
  });
};

/** Returns a PowerPoint file with a slide for each text. */
export const pptxOf = (...slides: readonly string[]): Buffer => {
  const ids = slides.map((_, at) => `<p:sldId id="${256 + at}" r:id="r${at + 1}"/>`);
  // The files are in another order than the slides.
  const fileOf = (at: number): string => `slides/slide${slides.length - at}.xml`;
  const targets = slides.map((_, at) => `<Relationship Id="r${at + 1}" Target="${fileOf(at)}"/>`);
  const slide = (text: string): string =>
    `${XML}<p:sld xmlns:p="p" xmlns:a="a"><p:txBody><a:p><a:r><a:t>${escapeXml(text)}</a:t></a:r></a:p></p:txBody></p:sld>`;
  return archiveOf({
    ...CONTENT_TYPES,
    'ppt/presentation.xml': `${XML}<p:presentation xmlns:p="p" xmlns:r="${RELATIONS}"><p:sldIdLst>${ids.join('')}</p:sldIdLst></p:presentation>`,
    'ppt/_rels/presentation.xml.rels': `${XML}<Relationships>${targets.join('')}</Relationships>`,
    ...Object.fromEntries(slides.map((text, at) => [`ppt/${fileOf(at)}`, slide(text)])),
  });
};

const ODF = 'urn:oasis:names:tc:opendocument:xmlns';
const OPEN_DOCUMENT = `xmlns:office="${ODF}:office:1.0" xmlns:text="${ODF}:text:1.0" xmlns:table="${ODF}:table:1.0" xmlns:draw="${ODF}:drawing:1.0"`;

/** Returns an OpenDocument file with a body in its XML. */
export const openDocumentOf = (kind: 'text' | 'spreadsheet' | 'presentation', body: string): Buffer =>
  archiveOf({
    mimetype: `application/vnd.oasis.opendocument.${kind}`,
    'content.xml': `${XML}<office:document-content ${OPEN_DOCUMENT}><office:body><office:${kind}>${body}</office:${kind}></office:body></office:document-content>`,
    'META-INF/manifest.xml': `${XML}<manifest/>`,
  });
