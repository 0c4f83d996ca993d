import { z } from 'zod';

/** Formats of images and documents that models take as they are. */
export const MEDIA_TYPES = ['image/png', 'image/jpeg', 'image/webp', 'image/gif', 'application/pdf'] as const;
export type MediaType = (typeof MEDIA_TYPES)[number];

/** Office files, by the ends of their names. Models get their text. */
export const OFFICE_TYPES = {
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  odt: 'application/vnd.oasis.opendocument.text',
  ods: 'application/vnd.oasis.opendocument.spreadsheet',
  odp: 'application/vnd.oasis.opendocument.presentation',
} as const;
export type OfficeType = (typeof OFFICE_TYPES)[keyof typeof OFFICE_TYPES];

const Pixels = z.int().positive().max(65_535);

/** Facts about an image or a document, read from its bytes. The log never has the bytes. */
export const MediaFacts = z.object({
  mediaType: z.enum([...MEDIA_TYPES, ...Object.values(OFFICE_TYPES)]),
  width: Pixels.optional().describe('Pixels of an image.'),
  height: Pixels.optional().describe('Pixels of an image.'),
  pages: z.int().positive().optional().describe('Pages of a PDF.'),
  textBytes: z.int().nonnegative().optional().describe('UTF-8 bytes of the text of a document.'),
});
export type MediaFacts = z.infer<typeof MediaFacts>;

const Path = z.string().min(1).max(1_024).describe('Path of a file of the workspace.');
const Digest = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .describe('SHA-256 (hex) that the file must have now. Default: any.');

/** Part of a message as a client sends it. Its bytes are those of a file of the workspace. */
export const ContentPart = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), text: z.string().min(1) }),
  z.strictObject({ type: z.literal('image'), path: Path, digest: Digest.optional() }),
  z.strictObject({ type: z.literal('file'), path: Path, digest: Digest.optional() }),
]);
export type ContentPart = z.infer<typeof ContentPart>;

/** Maximum number of files in one message. */
export const MAX_MESSAGE_FILES = 20;

/** A file of a message: the version of a file of the workspace. */
export const MessageFile = z.object({
  path: z.string(),
  digest: z.string().describe('SHA-256 (hex) of its bytes.'),
  size: z.int().nonnegative(),
  media: MediaFacts.optional().describe('Absent for a file that models get as text.'),
  at: z.int().nonnegative().describe('Number of characters of the text before it.'),
});
export type MessageFile = z.infer<typeof MessageFile>;
