import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { RouteReply } from '@antiphon/client';
import { invalid, isAppError, rejected } from '@antiphon/kernel';
import { extract, pack } from 'tar-stream';
import type { Pack } from 'tar-stream';
import type { CommandContext } from '../output.js';
import { type BrowseOptions, listAll, numberOf, readBytes, workspaceOf } from './browse-files.js';

export interface ExportOptions extends BrowseOptions {
  readonly proof?: boolean;
  readonly roots?: string;
  readonly key?: string;
  readonly archives?: string;
}

export interface VerifyOptions {
  readonly key?: string;
  readonly roots?: string;
}

/** A file of an export, with the change that it is from. */
interface ExportedFile {
  readonly path: string;
  readonly digest: string;
  readonly size: number;
  readonly mode: number;
  /** Version of the tree that changed the file last. */
  readonly version: number;
  readonly eventId: string;
}

/** List of the files of an export. It is stored next to them, as `<out>.json`. */
interface Manifest {
  readonly kind: 'antiphon-files';
  readonly format: 1;
  readonly workspace: string;
  /** Forked session whose tree it is; null for the tree of the workspace. */
  readonly session: string | null;
  readonly version: number;
  readonly files: readonly ExportedFile[];
  /** Paths whose bytes were erased: the export has no such file. */
  readonly erased: readonly string[];
}

const TAR = /\.tar$/;
/** Same bytes for the same version: a tar has no time of its own. */
const NO_TIME = new Date(0);

const digestOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Reads the event of each change up to a version. */
const readChanges = async (
  { http }: CommandContext,
  options: BrowseOptions,
  version: number,
): Promise<ReadonlyMap<number, string>> => {
  const changes = new Map<number, string>();
  const { session } = options;
  const params = workspaceOf(options);
  const { readFileHistory } = await http();
  for (let cursor: string | undefined | null; cursor !== null;) {
    const page: RouteReply<'readFileHistory'> = await readFileHistory({
      params,
      query: { limit: 1_000, cursor, session },
    });
    for (const change of page.changes)
      if (change.version <= version) changes.set(change.version, change.eventId);
    cursor = page.nextCursor;
  }
  return changes;
};

const readManifest = async (context: CommandContext, options: BrowseOptions): Promise<[Manifest, string]> => {
  numberOf('at', options.at);
  const { entries, version } = await listAll(context, '', { ...options, recursive: true });
  const changes = await readChanges(context, options, version);
  const files = entries.flatMap(({ path, digest, size, mode, version: changed, is_virtual: isVirtual }) =>
    isVirtual || digest === null
      ? []
      : [{ path, digest, size, mode, version: changed, eventId: changes.get(changed) ?? '' }],
  );
  const { workspace = 'default', session = null } = options;
  const newest = [...changes.keys()].reduce((last, one) => Math.max(last, one), 0);
  const manifest: Manifest = {
    ...{ kind: 'antiphon-files', format: 1, workspace, session, version, files, erased: [] },
  };
  return [manifest, changes.get(newest) ?? ''];
};

const readFileOf = async (
  context: CommandContext,
  options: BrowseOptions,
  { path, digest }: ExportedFile,
  version: number,
): Promise<Buffer | null> => {
  const bytes = await readBytes(context, path, options, String(version)).catch((error: unknown) => {
    if (isAppError(error) && error.code === 'FILE.ERASED') return null;
    throw error;
  });
  if (bytes === null) return null;
  if (digestOf(bytes) === digest) return bytes;
  throw rejected('FILE.NO_BYTES', `the bytes of ${path} have another digest`);
};

/** Returns the bytes of a file; null if they were erased. */
type ReadFile = (file: ExportedFile) => Promise<Buffer | null>;

const writeFolder = async (out: string, { files }: Manifest, read: ReadFile): Promise<void> => {
  await mkdir(out, { mode: 0o700 });
  for (const file of files) {
    const target = join(out, file.path);
    if (!target.startsWith(out + sep)) throw rejected('CLI.USAGE', `the path ${file.path} leaves the folder`);
    const bytes = await read(file);
    if (bytes === null) continue;
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    await writeFile(target, bytes, { flag: 'wx', mode: file.mode });
  }
};

const addEntries = async (tar: Pack, { files }: Manifest, read: ReadFile): Promise<void> => {
  for (const file of files) {
    const bytes = await read(file);
    if (bytes === null) continue;
    const header = { name: file.path, size: bytes.length, mode: file.mode, mtime: NO_TIME };
    await new Promise<void>((done, fail) => {
      tar.entry(header, bytes, (error) => (error ? fail(error) : done()));
    });
  }
  tar.finalize();
};

const writeTar = async (out: string, manifest: Manifest, read: ReadFile): Promise<void> => {
  const tar = pack();
  const written = pipeline(tar, createWriteStream(out, { flags: 'wx', mode: 0o600 }));
  await Promise.all([
    written,
    addEntries(tar, manifest, read).catch((error: unknown) => {
      tar.destroy(error as Error);
      throw error;
    }),
  ]);
};

const prove = async (context: CommandContext, options: ExportOptions, eventId: string): Promise<string> => {
  const { proveChanges } = await import('../audit/prove-tree.js');
  return proveChanges(context, options, eventId);
};

/**
 * Writes the files of a version to a new folder or tar, with a list of their digests. With `proof`
 * it also writes the proof of the tree.
 */
export const exportFiles = async (context: CommandContext, options: ExportOptions): Promise<void> => {
  const out = resolve(context.cwd, options.out ?? '');
  const [manifest, eventId] = await readManifest(context, options);
  const { files, version } = manifest;
  // The proof comes first: without a signed root there is no export.
  const proof = options.proof ? await prove(context, options, eventId) : null;
  const erased: string[] = [];
  const read: ReadFile = async (file) => {
    const bytes = await readFileOf(context, options, file, version);
    if (bytes === null) erased.push(file.path);
    return bytes;
  };
  await (TAR.test(out) ? writeTar : writeFolder)(out, manifest, read);
  const text = `${JSON.stringify({ ...manifest, erased }, null, 2)}\n`;
  await writeFile(`${out}.json`, text, { flag: 'wx', mode: 0o600 });
  if (proof !== null) await writeFile(`${out}.proof.json`, proof, { flag: 'wx', mode: 0o600 });
  const folder = TAR.test(out) ? { tar: out } : { folder: out };
  const signed = proof === null ? '' : `, and their proof in ${out}.proof.json`;
  context.output.result(
    { ...manifest, erased, ...folder },
    `${files.length - erased.length} files of version ${version} are in ${out}${signed}`,
  );
};

/** Reads the digest, size and mode of each file of a tar. */
const readTar = async (
  file: string,
): Promise<ReadonlyMap<string, Omit<ExportedFile, 'version' | 'eventId'>>> => {
  const found = new Map<string, Omit<ExportedFile, 'version' | 'eventId'>>();
  const tar = extract();
  const reading = pipeline(createReadStream(file), tar);
  for await (const entry of tar) {
    const { name: path, mode = 0, type } = entry.header;
    const hash = createHash('sha256');
    let size = 0;
    for await (const chunk of entry as AsyncIterable<Buffer>) {
      hash.update(chunk);
      size += chunk.length;
    }
    if (type !== 'file' || found.has(path)) throw notEqual(`${path} is no plain file, or is there twice`);
    found.set(path, { path, digest: hash.digest('hex'), size, mode });
  }
  await reading;
  return found;
};

/** Names the files that the exporter left out as erased: the proof does not show that they were. */
const withoutErased = (paths: readonly string[]): string =>
  paths.length === 0 ? '' : ` without ${paths.length} that the list names as erased`;

const notEqual = (reason: string): Error => invalid('PROOF.INVALID', `the export is not the tree: ${reason}`);

const readText = (file: string): Promise<string> =>
  readFile(file, 'utf8').catch((cause: unknown) => {
    throw invalid('CLI.USAGE', `${file} cannot be read: ${(cause as Error).message}`, { cause });
  });

/** Verifies a tar and its proof offline: it has the files of the proved version, and no others. */
export const verifyExport = async (
  context: CommandContext,
  file: string,
  options: VerifyOptions,
): Promise<void> => {
  const tar = resolve(context.cwd, file);
  const { verifyTree } = await import('../audit/prove-tree.js');
  const { files, version, proof } = verifyTree(context, await readText(`${tar}.proof.json`), options);
  const found = await readTar(tar);
  const { erased = [] } = JSON.parse(await readText(`${tar}.json`)) as Partial<Manifest>;
  for (const [path, { digest, size, mode }] of files) {
    const own = found.get(path);
    if (!own && erased.includes(path)) continue;
    if (!own) throw notEqual(`${path} is missing`);
    if (own.digest !== digest || own.size !== size || own.mode !== mode)
      throw notEqual(`${path} has other bytes or another mode`);
  }
  const more = [...found.keys()].find((path) => !files.has(path));
  if (more !== undefined) throw notEqual(`${more} is not in the tree`);
  const { event, root } = proof;
  context.output.result(
    {
      ok: true,
      version,
      files: found.size,
      erased,
      event: { eventId: event.eventId, position: event.position },
      root,
    },
    `${found.size} files are those of the tree${withoutErased(erased)} after event ${event.eventId}, at position ${event.position} of the log\nsigned up to position ${root.position} at ${root.at} with the key ${root.keyId}\nthe proof holds`,
  );
};
