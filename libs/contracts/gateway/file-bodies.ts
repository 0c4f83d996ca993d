import { z } from 'zod';
import { FileDigest, FileMode } from '../agent/file-events.js';
import { FileChange, FilePath } from '../agent/file-requests.js';
import { Position } from './at.js';
import { ByWorkspace } from './chat-bodies.js';

/** Path parameters of a file. */
export const ByFile = ByWorkspace.extend({ path: FilePath });

const session = z.uuid().optional().describe('Session whose tree it is: a fork has a tree of its own.');
const at = z.coerce
  .number()
  .int()
  .nonnegative()
  .optional()
  .describe('Version of the tree. Default: the newest.');
const position = Position.optional().describe(
  'Position of the log as of which to answer, instead of a version.',
);
const flag = z.enum(['true', 'false']).default('false');
const page = {
  limit: z.coerce.number().int().min(1).max(1_000).default(200),
  cursor: z.string().max(500).optional(),
};

/** Query of `GET /api/v1/workspaces/:id/files`. */
export const FilesQuery = z.strictObject({
  path: z.string().max(1_024).default('').describe('Folder; empty for the root.'),
  recursive: flag,
  bin: flag.describe('Lists deleted files instead.'),
  foldersFirst: flag.describe('Lists the folders before the files.'),
  q: z
    .string()
    .max(200)
    .optional()
    .describe('Text that the path below the folder must have, without regard to case.'),
  ...{ session, at, position, ...page },
});

/** Query of `GET /api/v1/workspaces/:id/files/:path`. */
export const FileQuery = z.strictObject({
  ...{ session, at, position },
  offset: z.coerce.number().int().nonnegative().default(0).describe('First byte.'),
  length: z.coerce.number().int().positive().optional().describe('Number of bytes. Default: all.'),
});

/** Query of `GET /api/v1/workspaces/:id/file-history`. */
export const FileHistoryQuery = z.strictObject({
  path: z.string().max(1_024).default('').describe('File or folder; empty for the whole tree.'),
  ...{ session, ...page, at, position },
});

/** Body of `PUT /api/v1/workspaces/:id/files/:path`. */
export const FileWriteBody = z
  .strictObject({
    text: z.string().optional().describe('Text, which is stored as UTF-8.'),
    base64: z.base64().optional().describe('Bytes.'),
    expect: FileDigest.nullable()
      .optional()
      .describe('Digest of the file before; null if there must be none. Absent: any.'),
    mode: FileMode.optional(),
    session,
  })
  .refine(({ text, base64 }) => (text === undefined) !== (base64 === undefined), 'give text or base64');

/** Query of `PUT /api/v1/workspaces/:id/files/:path`, for a body that is the bytes. */
export const FileWriteQuery = z.strictObject({
  session,
  expect: z
    .union([FileDigest, z.literal('none')])
    .optional()
    .describe('Digest of the file before; `none` if there must be none. Absent: any.'),
  executable: z.enum(['true', 'false']).optional(),
});

/** Query of `DELETE /api/v1/workspaces/:id/files/:path`. */
export const FileDeleteQuery = z.strictObject({
  expect: FileDigest.optional(),
  files: z.coerce.number().int().positive().optional().describe('Number of files, to delete a folder.'),
  session,
});

/** Body of `POST /api/v1/workspaces/:id/file-changes`. */
export const FileChangesBody = z.strictObject({ changes: z.array(FileChange).min(1).max(100), session });

/** Body of `POST /api/v1/workspaces/:id/file-erasures`. */
export const FileErasureBody = z
  .strictObject({
    path: FilePath.optional().describe('File whose bytes are erased: all versions of it, or one.'),
    version: z
      .int()
      .nonnegative()
      .optional()
      .describe('Version of the tree. Absent: all versions of the path.'),
    digest: FileDigest.optional().describe('Digest of the bytes, instead of a path.'),
    reason: z.string().max(1_000).optional().describe('Reason, which the fact records.'),
    session,
  })
  .refine(({ path, digest }) => (path === undefined) !== (digest === undefined), 'give path or digest');
