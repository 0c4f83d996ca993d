import { SaxesParser } from 'saxes';

/** Bytes that the parser gets at once. */
const CHUNK = 65_536;
/** Maximum depth of elements. */
const MAX_DEPTH = 256;

export type Attributes = Readonly<Record<string, string>>;

/** Functions that get the elements of a document by their local names. */
export interface XmlReader {
  readonly open?: (name: string, attributes: Attributes) => void;
  readonly close?: (name: string) => void;
  readonly text?: (text: string) => void;
  /** Elements that are left out with all that they have. */
  readonly skips?: ReadonlySet<string>;
}

const localName = (name: string): string => name.slice(name.indexOf(':') + 1);

/** Returns an attribute by its local name. */
export const attributeOf = (attributes: Attributes, name: string): string | undefined =>
  attributes[name] ?? Object.entries(attributes).find(([key]) => localName(key) === name)?.[1];

const encodingOf = ([first, second]: Uint8Array): string =>
  first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8';

/**
 * Reads a document in one pass. A document type is refused, so that it can define no entity and
 * name no other file.
 */
export const walkXml = (bytes: Uint8Array, { open, close, text, skips }: XmlReader): void => {
  const parser = new SaxesParser();
  let depth = 0;
  let skippedFrom = Infinity;
  parser.on('doctype', () => {
    throw new Error('the document has a document type');
  });
  parser.on('opentag', ({ name, attributes }) => {
    if (++depth > MAX_DEPTH) throw new Error('the document is too deep');
    const local = localName(name);
    if (depth < skippedFrom && skips?.has(local)) skippedFrom = depth;
    if (depth < skippedFrom) open?.(local, attributes);
  });
  parser.on('closetag', ({ name }) => {
    if (depth < skippedFrom) close?.(localName(name));
    if (depth === skippedFrom) skippedFrom = Infinity;
    depth--;
  });
  const addText = (part: string): void => {
    if (depth < skippedFrom) text?.(part);
  };
  parser.on('text', addText);
  parser.on('cdata', addText);
  const decoder = new TextDecoder(encodingOf(bytes), { fatal: true });
  for (let at = 0; at < bytes.length; at += CHUNK)
    parser.write(decoder.decode(bytes.subarray(at, at + CHUNK), { stream: true }));
  parser.write(decoder.decode());
  parser.close();
};
