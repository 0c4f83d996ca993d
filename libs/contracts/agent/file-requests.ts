import { z } from 'zod';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';
import { ChatView } from './chat-requests.js';
import { FileCause, FileDigest, FileMode } from './file-events.js';
import { Caller, IdempotencyKey } from './requests.js';

/** Path in a tree. The agent service checks its parts (`FILE.INVALID_PATH`). */
export const FilePath = z
  .string()
  .min(1)
  .max(1_024)
  .describe('Path from the root of the workspace, such as `docs/plan.md`.');

const Version = z.int().nonnegative().describe('Version of the tree: the number of its changes.');
/** Position of the log as of which to read, instead of a version. */
const position = z.int().nonnegative().optional();
const tree = {
  workspace: WorkspaceId,
  /** Session whose tree it is: a fork has a tree of its own. Default: the tree of the workspace. */
  session: z.uuid().optional(),
};

/** False for a caller who may not read chats: the tree then has none of their files. */
const chats = z.boolean().optional();

/** A file of a tree, or a folder that holds files. */
export const FileEntryView = z.object({
  path: z.string(),
  kind: z.enum(['file', 'folder']),
  size: z.int().nonnegative().describe('Bytes; of a folder the sum of its files.'),
  digest: FileDigest.nullable().describe('SHA-256 of the bytes; null for a folder or a virtual file.'),
  mode: FileMode,
  version: Version.describe('Version of the tree that changed it last.'),
  files: z.int().positive().optional().describe('Number of files in a folder.'),
  is_virtual: z.boolean().describe('True for a file that is built on read, such as a chat.'),
  changedAt: z.iso
    .datetime()
    .nullable()
    .default(null)
    .describe('Time of the last change; null for a virtual file.'),
  changedBy: z.string().nullable().default(null).describe('Actor of the last change, such as `agent/main`.'),
});
export type FileEntryView = z.infer<typeof FileEntryView>;

/**
 * Lists files below a folder, by path. Without `recursive` the files and folders of one level.
 * Errors: `FILE.NOT_FOUND`, `FILE.INVALID_PATH`, `FILE.NO_SUCH_VERSION`.
 */
export const listFiles = defineRequest({
  subject: 'cmd.agent.file.list',
  request: z.strictObject({
    ...tree,
    path: z.string().max(1_024).default(''),
    recursive: z.boolean().default(false),
    /** Lists the bin instead. */
    bin: z.boolean().default(false),
    chats,
    /** Text that the path below the folder must have, without regard to case. */
    q: z.string().max(200).optional(),
    foldersFirst: z.boolean().default(false),
    at: Version.optional(),
    position,
    limit: z.int().min(1).max(1_000).default(200),
    cursor: z.string().max(4_000).optional(),
  }),
  reply: z.object({
    version: Version,
    entries: z.array(FileEntryView),
    total: z.int().nonnegative().describe('Number of entries of all pages.'),
    nextCursor: z.string().nullable(),
  }),
  timeoutMs: 10_000,
});

/**
 * Returns a file. Its bytes are in the blob store under its digest. The digest of a virtual file is
 * null: the reader renders it.
 * Errors: `FILE.NOT_FOUND`, `FILE.IS_FOLDER`, `FILE.INVALID_PATH`, `FILE.NO_SUCH_VERSION`,
 * `FILE.NOT_ALLOWED`.
 */
export const statFile = defineRequest({
  subject: 'cmd.agent.file.stat',
  request: z.strictObject({ ...tree, path: FilePath, at: Version.optional(), position, chats }),
  reply: z.object({
    version: Version,
    file: FileEntryView,
    /** Chat that a virtual file shows, with the name and the version that it has in this tree. */
    chat: ChatView.extend({ version: z.int().nonnegative() }).optional(),
  }),
  timeoutMs: 10_000,
});

/** Expected digest of the file before a change; null if the file must not exist. */
const Expected = FileDigest.nullable().optional();

/** One change of a tree. `write` names bytes that are in the blob store. */
export const FileChange = z.discriminatedUnion('op', [
  z.strictObject({
    op: z.literal('write'),
    path: FilePath,
    digest: FileDigest,
    size: z.int().nonnegative(),
    mode: FileMode.optional(),
    expect: Expected,
  }),
  z.strictObject({ op: z.literal('move'), path: FilePath, to: FilePath, expect: Expected }),
  z.strictObject({
    op: z.literal('delete'),
    path: FilePath,
    expect: Expected,
    /** Number of files of a folder that the caller saw. Absent: the path is a file. */
    files: z.int().positive().optional(),
  }),
  z.strictObject({
    op: z.literal('restore'),
    path: FilePath,
    /** Version of the tree whose file is restored. Absent: the newest one of the path in the bin. */
    version: Version.optional(),
    expect: Expected,
  }),
]);
export type FileChange = z.infer<typeof FileChange>;

export const FileResult = z.object({
  path: z.string(),
  digest: FileDigest.nullable().describe('Digest now; null if it is gone.'),
  before: FileDigest.nullable().describe('Digest before; null if there was no file.'),
  size: z.int().nonnegative(),
  version: Version.describe('Version of the tree after the change.'),
});
export type FileResult = z.infer<typeof FileResult>;

/**
 * Changes files: all changes, or none. The data of `FILE.STALE` has the digest now and, of a text
 * of at most 1 MiB, the `diff` since `expect`. Other errors: `FILE.NOT_FOUND`, `FILE.EXISTS`,
 * `FILE.IS_FOLDER`, `FILE.PATH_CLASH`, `FILE.VIRTUAL`, `FILE.QUOTA`, `FILE.NO_BYTES`,
 * `FILE.INVALID_PATH`.
 */
export const changeFiles = defineRequest({
  subject: 'cmd.agent.file.change',
  request: z.strictObject({
    ...tree,
    changes: z.array(FileChange).min(1).max(100),
    actor: Caller,
    idempotencyKey: IdempotencyKey.optional(),
  }),
  reply: z.object({ version: Version, files: z.array(FileResult) }),
  timeoutMs: 15_000,
});

/**
 * Checks whether a file of a size could be written now, before its bytes arrive. Errors: as for
 * `changeFiles`.
 */
export const checkFileWrite = defineRequest({
  subject: 'cmd.agent.file.check',
  request: z.strictObject({ ...tree, path: FilePath, size: z.int().nonnegative(), expect: Expected }),
  reply: z.object({ version: Version }),
  timeoutMs: 10_000,
});

/** A change of a file, from its fact. */
export const FileChangeView = z.object({
  version: Version,
  type: z.enum(['written', 'moved', 'deleted', 'restored', 'changed_outside']),
  path: z.string(),
  to: z.string().nullable().describe('New path of a move; else null.'),
  digest: FileDigest.nullable(),
  before: FileDigest.nullable(),
  size: z.int().nonnegative(),
  cause: FileCause.describe('Actor and, for a tool call, its session, turn and call.'),
  eventId: z.uuid(),
  eventPosition: z.int().positive().describe('Position of the event in the log.'),
  at: z.iso.datetime(),
});
export type FileChangeView = z.infer<typeof FileChangeView>;

/** Returns the changes of a path, of the files below a folder, or of a whole tree, newest first. */
export const readFileHistory = defineRequest({
  subject: 'cmd.agent.file.history',
  request: z.strictObject({
    ...tree,
    path: z.string().max(1_024).default(''),
    /** Newest version of the tree. */
    at: Version.optional(),
    position,
    limit: z.int().min(1).max(1_000).default(100),
    cursor: z.string().max(4_000).optional(),
  }),
  reply: z.object({ changes: z.array(FileChangeView), nextCursor: z.string().nullable() }),
  timeoutMs: 10_000,
});

/**
 * Erases bytes for ever: those of a digest, of a file at a version, or of all versions of a file.
 * Without a session, all versions are those of the workspace and of all forked sessions; with one,
 * those of its tree. Files that have the bytes now go to the bin, in the tree of the request and in
 * that of the workspace. Facts and histories stay. Errors: `FILE.NOT_FOUND`,
 * `FILE.IS_FOLDER`, `FILE.NO_BYTES`, `FILE.INVALID_PATH`.
 */
export const eraseFiles = defineRequest({
  subject: 'cmd.agent.file.erase',
  request: z.strictObject({
    ...tree,
    path: FilePath.optional(),
    /** Version of the tree. Absent: all versions of the path. */
    version: Version.optional(),
    /** Instead of a path. */
    digest: FileDigest.optional(),
    reason: z.string().max(1_000).optional(),
    actor: Caller,
  }),
  reply: z.object({
    erased: z.array(FileDigest).describe('Digests whose bytes are erased now.'),
    already: z.int().nonnegative().describe('Number of digests that were erased before.'),
    deleted: z.array(z.string()).describe('Paths that went to the bin because they had such bytes.'),
    kept: z
      .array(FileDigest)
      .default([])
      .describe('Other contents of the path, outside the session of the request, whose bytes stay.'),
  }),
  timeoutMs: 30_000,
});
