import { z } from 'zod';

const Path = z
  .string()
  .min(1)
  .max(1_024)
  .describe('Path from the root of the workspace, such as src/app.ts.');
const Folder = z.string().max(1_024).default('').describe('Folder; empty for the root.');
const Content = z.string().max(5_000_000);
const Removes = z
  .int()
  .positive()
  .optional()
  .describe('Number of removed lines, to confirm a change that removes over half of a file.');

const Edit = z.strictObject({
  path: Path,
  old: Content.min(1).describe('Exact text of the file, which occurs once. Include enough lines around it.'),
  new: Content.describe('Text that replaces it.'),
  removes: Removes,
});

const Ignored = z
  .boolean()
  .default(false)
  .describe('Includes files that a .gitignore names. A search then also includes hidden folders.');

/** Arguments of the tools for files. */
export const FILE_INPUT = {
  ls: z.strictObject({
    path: Folder,
    recursive: z.boolean().default(false),
    bin: z.boolean().default(false).describe('Lists deleted files instead.'),
    ignored: Ignored,
    from: z.int().min(1).default(1).describe('Number of the first entry.'),
    limit: z.int().min(1).max(1_000).default(200),
  }),
  read: z.strictObject({
    path: Path,
    from: z.int().min(1).default(1).describe('Number of the first line.'),
    lines: z.int().min(1).max(5_000).default(1_000).describe('Number of lines.'),
  }),
  write: z.strictObject({
    path: Path,
    content: Content.describe('Whole text of the file.'),
    executable: z.boolean().optional(),
    removes: Removes,
  }),
  edit: z
    .strictObject({
      path: Path.optional(),
      old: Edit.shape.old.optional(),
      new: Edit.shape.new.optional(),
      removes: Removes,
      edits: z.array(Edit).min(1).max(50).optional().describe('Several edits: all of them, or none.'),
    })
    .refine(
      ({ path, old, new: text, edits }) =>
        edits
          ? path === undefined && old === undefined
          : path !== undefined && old !== undefined && text !== undefined,
      'give path, old and new, or edits',
    ),
  rm: z.strictObject({
    path: Path,
    files: z.int().positive().optional().describe('Number of files of a folder, to remove the folder.'),
  }),
  move: z.strictObject({ path: Path, to: Path }),
  search: z.strictObject({
    query: z
      .string()
      .min(1)
      .max(1_000)
      .describe('Text, or with regex an RE2 expression. Searched in each line.'),
    path: Folder,
    regex: z.boolean().default(false),
    ignore_case: z.boolean().default(false),
    ignored: Ignored,
    from: z.int().min(1).max(10_000).default(1).describe('Number of the first found line to return.'),
    limit: z.int().min(1).max(500).default(100).describe('Maximum number of lines.'),
  }),
} as const;
export type FileToolName = keyof typeof FILE_INPUT;

export const FILE_DESCRIPTIONS: Readonly<Record<FileToolName, string>> = {
  ls: 'Lists the files and folders of a folder, by path, with their sizes.',
  read: 'Reads lines of a text file, with their numbers. Read a file before you change it.',
  write: 'Writes a whole file. A file that exists must have been read whole, and must not have changed.',
  edit: 'Replaces text that occurs exactly once in a file that was read. All other bytes stay.',
  rm: 'Moves a file to the bin. A folder needs the number of its files.',
  move: 'Gives a file or folder another path, where nothing is.',
  search: 'Finds lines in files: path, number and text of each. Hidden and ignored folders are left out.',
};
