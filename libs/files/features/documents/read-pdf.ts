import { getDocumentProxy } from 'unpdf';
import type { DocumentText } from '../text-work.js';

/** Options of pdf.js: no code of the document runs, and nothing is fetched. */
const SAFE = { isEvalSupported: false, useSystemFonts: false, disableFontFace: true, verbosity: 0 } as const;

interface TextItem {
  readonly str: string;
  readonly hasEOL: boolean;
}

const isText = (item: object): item is TextItem => 'str' in item;

/** Returns the pages of a PDF and the text of its first ones. Runs in a thread with a deadline. */
export const readPdf = async (bytes: Uint8Array, maxPages: number): Promise<DocumentText> => {
  const document = await getDocumentProxy(bytes, SAFE);
  const pages = document.numPages;
  const texts: string[] = [];
  for (let number = 1; number <= Math.min(pages, maxPages); number++) {
    const page = await document.getPage(number);
    const { items } = await page.getTextContent();
    const text = items.map((item) => (isText(item) ? item.str + (item.hasEOL ? '\n' : '') : '')).join('');
    texts.push(`[page ${number}]\n${text.trim()}`);
    page.cleanup();
  }
  return { pages, text: texts.join('\n\n') };
};
