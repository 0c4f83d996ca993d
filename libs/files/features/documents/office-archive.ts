import { OFFICE_TYPES } from '@antiphon/contracts/agent';
import type { OfficeType } from '@antiphon/contracts/agent';
import { strFromU8, unzipSync, type UnzipFileInfo } from 'fflate';
import type { UnreadOffice } from '../text-work.js';

/** Maximum number of files in an archive. */
const MAX_ENTRIES = 5_000;
/** Maximum number of bytes of all unpacked parts that are read. */
const MAX_UNPACKED = 64 * 1_024 * 1_024;
/** Bytes of the entry that names the format of an OpenDocument file. */
const MAX_MIMETYPE = 100;

/** Names of the main parts. Some programs add a number. */
const MAIN_PARTS: readonly (readonly [RegExp, OfficeType])[] = [
  [/^word\/document\d{0,3}\.xml$/, OFFICE_TYPES.docx],
  [/^xl\/workbook\d{0,3}\.xml$/, OFFICE_TYPES.xlsx],
  [/^ppt\/presentation\d{0,3}\.xml$/, OFFICE_TYPES.pptx],
];

/** Parts that have text, or that say where text is. Pictures are never unpacked. */
const READ_PARTS: Readonly<Record<'word' | 'xl' | 'ppt' | 'odf', RegExp>> = {
  word: /^word\/(?:document\d{0,3}|footnotes|endnotes)\.xml$/,
  xl: /^xl\/(?:(?:workbook\d{0,3}|sharedStrings|styles)\.xml|_rels\/workbook\d{0,3}\.xml\.rels|worksheets\/[^/]+\.xml)$/,
  ppt: /^ppt\/(?:presentation\d{0,3}\.xml|_rels\/presentation\d{0,3}\.xml\.rels|slides\/[^/]+\.xml)$/,
  odf: /^(?:content|META-INF\/manifest)\.xml$/,
};

/** The parts of an office file that are read. */
export interface OfficeArchive {
  readonly mediaType: OfficeType;
  readonly main: string;
  readonly parts: ReadonlyMap<string, Uint8Array>;
}

interface Entry {
  readonly name: string;
  readonly unpacked: number;
}

const listEntries = (bytes: Uint8Array): Entry[] => {
  const entries: Entry[] = [];
  unzipSync(bytes, {
    filter: ({ name, size, originalSize }) => {
      entries.push({ name, unpacked: Math.max(size, originalSize) });
      return false;
    },
  });
  return entries;
};

/** Unpacks entries. Several may have one name, so their sizes are asked as well. */
const unpack = (
  bytes: Uint8Array,
  isWanted: (name: string, unpacked: number) => boolean,
): Map<string, Uint8Array> => {
  const filter = ({ name, size, originalSize }: UnzipFileInfo): boolean =>
    isWanted(name, Math.max(size, originalSize));
  return new Map(Object.entries(unzipSync(bytes, { filter })));
};

/** Returns the format that an OpenDocument file names in its first entry. */
const openDocumentType = (bytes: Uint8Array, entries: readonly Entry[]): OfficeType | null => {
  const isType = (name: string, unpacked: number): boolean => name === 'mimetype' && unpacked <= MAX_MIMETYPE;
  if (!entries.some(({ name, unpacked }) => isType(name, unpacked))) return null;
  const text = strFromU8(unpack(bytes, isType).get('mimetype') ?? new Uint8Array());
  const { odt, ods, odp } = OFFICE_TYPES;
  return [odt, ods, odp].find((type) => text.trim() === type) ?? null;
};

const findFormat = (
  bytes: Uint8Array,
  entries: readonly Entry[],
): Pick<OfficeArchive, 'mediaType' | 'main'> | null => {
  for (const [pattern, mediaType] of MAIN_PARTS) {
    const main = entries.find(({ name }) => pattern.test(name));
    if (main) return { mediaType, main: main.name };
  }
  const mediaType = openDocumentType(bytes, entries);
  return mediaType && { mediaType, main: 'content.xml' };
};

const isEncrypted = ({ parts }: OfficeArchive): boolean =>
  strFromU8(parts.get('META-INF/manifest.xml') ?? new Uint8Array()).includes('encryption-data');

/**
 * Unpacks the parts of an office file that have text. Their declared sizes are bounded, and none
 * gets more bytes than it declares. Returns null for another archive.
 */
export const openOffice = (bytes: Uint8Array): OfficeArchive | UnreadOffice | null => {
  const entries = listEntries(bytes);
  const format = findFormat(bytes, entries);
  if (format === null) return null;
  if (entries.length > MAX_ENTRIES) return { problem: 'too_many_parts', detail: MAX_ENTRIES };
  const folder = format.main.split('/')[0] ?? '';
  const pattern = READ_PARTS[folder === 'word' || folder === 'xl' || folder === 'ppt' ? folder : 'odf'];
  const read = entries.filter(({ name }) => pattern.test(name));
  if (read.reduce((sum, { unpacked }) => sum + unpacked, 0) > MAX_UNPACKED)
    return { problem: 'unpacked_too_large', detail: MAX_UNPACKED };
  const archive = { ...format, parts: unpack(bytes, (name) => pattern.test(name)) };
  return isEncrypted(archive) ? { problem: 'encrypted', detail: '' } : archive;
};
