import { z } from 'zod';
import { event } from '../log/stored-event.js';

/** SHA-256 of a file's bytes, hex. */
export const FileDigest = z.string().regex(/^[0-9a-f]{64}$/);
export type FileDigest = z.infer<typeof FileDigest>;

/** Permission bits of a file: `0o644`, or `0o755` for an executable one. */
export const FileMode = z.union([z.literal(0o644), z.literal(0o755)]);
export type FileMode = z.infer<typeof FileMode>;

/** Origin of a change: the tool call of a turn, or a caller of the API. */
export const FileCause = z.object({
  /** Principal: `key/<id>`, `local`, `agent/<id>`, `disk`, `runtime`. */
  actor: z.string().min(1).max(200),
  sessionId: z.uuid().optional(),
  turnId: z.uuid().optional(),
  callId: z.string().max(200).optional(),
});
export type FileCause = z.infer<typeof FileCause>;

/** Quotas of a tree: of one file, and of all files, bytes and versions. */
export const FileQuotas = z.object({
  maxFileBytes: z.int().nonnegative(),
  maxFiles: z.int().nonnegative(),
  maxBytes: z.int().nonnegative(),
  maxVersions: z.int().nonnegative(),
});
export type FileQuotas = z.infer<typeof FileQuotas>;

const origin = { cause: FileCause, at: z.iso.datetime() };
const change = {
  ...origin,
  /** Quotas from this change on. Absent: those of the change before. */
  quotas: FileQuotas.optional(),
};
const content = { digest: FileDigest, size: z.int().nonnegative(), mode: FileMode };
const Path = z.string().min(1).max(1_024);

/** The first event of a fork's tree: it has the files of its base at a version. No file is copied. */
export const FileTreeForked = event('FileTreeForked', {
  ...origin,
  /** UUID of the tree that it starts from. */
  base: z.uuid(),
  /** Version of the base; 0 if the base had no event. */
  version: z.int().nonnegative(),
});
/** A file exists with these bytes. */
export const FileWritten = event('FileWritten', {
  ...change,
  path: Path,
  ...content,
  /** Digest of the bytes before; null for a new file. */
  before: FileDigest.nullable(),
});
/** A file has another path. No file was there. */
export const FileMoved = event('FileMoved', { ...change, path: Path, to: Path, ...content });
/** A file is in the bin, under the version of this event. */
export const FileDeleted = event('FileDeleted', { ...change, path: Path, ...content });
/** A file has the bytes of an earlier version again, from its history or from the bin. */
export const FileRestored = event('FileRestored', {
  ...change,
  path: Path,
  ...content,
  before: FileDigest.nullable(),
  /** Version of the tree that had these bytes. */
  from: z.int().positive(),
});
/** The copy on disk was changed by another program. A digest of null: the file was removed. */
export const FileChangedOutside = event('FileChangedOutside', {
  ...change,
  path: Path,
  digest: FileDigest.nullable(),
  size: z.int().nonnegative(),
  mode: FileMode,
  before: FileDigest.nullable(),
});

/** Every event of a `file-tree-<id>` stream. */
export const FileTreeEvent = z.discriminatedUnion('type', [
  FileTreeForked,
  FileWritten,
  FileMoved,
  FileDeleted,
  FileRestored,
  FileChangedOutside,
]);
export type FileTreeEvent = z.infer<typeof FileTreeEvent>;

/** The bytes of a digest are erased: no version of any file has them any more. Its facts stay. */
export const FileBytesErased = event('FileBytesErased', {
  cause: FileCause,
  at: z.iso.datetime(),
  digest: FileDigest,
  size: z.int().nonnegative(),
  reason: z.string().max(1_000).nullable(),
});
/** Every event of a `file-erasures-<id>` stream: each workspace has one. */
export const FileErasureEvent = z.discriminatedUnion('type', [FileBytesErased]);
export type FileErasureEvent = z.infer<typeof FileErasureEvent>;

/** Returns the event stream of a workspace's erasures. */
export const fileErasuresStream = (id: string): string => `file-erasures-${id}`;

/** Returns the event stream of a tree (`fileTreeIdOf` derives the UUID). */
export const fileTreeStream = (treeId: string): string => `file-tree-${treeId}`;
