import { normalizeFolder } from '@antiphon/files-domain';
import type { FileEntry } from '@antiphon/files-domain';
import type { BlobStore } from '@antiphon/database';
import { isAppError } from '@antiphon/kernel';
import { isBinary, oneLevel } from '@antiphon/files-features';
import type { FileTrees } from '@antiphon/files-features';
import { TEXT_DEADLINE_MS } from '@antiphon/service-host/worker-pool';
import { toolJobs } from '../text-work.js';
import type { NativeCall, FileAccess, FileAccessDeps, FileInput } from '@antiphon/conversation-features';
import { isWithin, resultOf } from '@antiphon/conversation-features';
import { numberLines } from './read-lines.js';
import { searchFiles } from './run-search.js';
import type { SearchedFile } from './search-files.js';

export interface ReadToolsDeps extends FileAccessDeps {
  readonly files: FileTrees;
  readonly blobs: Pick<BlobStore, 'readMany' | 'findContaining'>;
}

/** Bytes of files that a search reads at once. */
const SEARCH_BATCH_BYTES = 8 * 1024 * 1024;
const SEARCH_BATCH_FILES = 500;
/** Folders that a search leaves out unless it begins in them. */
const LEFT_OUT = /(^|\/)(\.[^/]+|node_modules)\//;

const IGNORE_FILE = /(^|\/)\.gitignore$/;
/** Maximum number of `.gitignore` files, and of bytes of each. Further ones have no effect. */
const MAX_IGNORE_FILES = 500;
const MAX_IGNORE_BYTES = 100_000;

/** Files that one query compares with a text: a bound of its time. */
const FIND_BATCH_FILES = 2_500;
const FIND_BATCH_BYTES = 16 * 1024 * 1024;
/** Queries of a search that run at once. */
const AHEAD = 2;
const NO_BYTES = new Uint8Array();
/** Codes of a listed file without bytes. */
const GONE: ReadonlySet<string> = new Set(['FILE.ERASED', 'FILE.NOT_FOUND']);
const BINARY = Uint8Array.of(0);

interface ListedFile {
  readonly path: string;
  readonly digest: string | null;
  readonly size: number;
}

/** Returns files in batches, each up to a number of files and about a number of bytes. */
function* batchesOf(
  files: readonly ListedFile[],
  mostFiles: number,
  mostBytes: number,
): Generator<ListedFile[]> {
  let bytes = 0;
  let batch: ListedFile[] = [];
  for (const file of files) {
    batch.push(file);
    bytes += file.size;
    if (batch.length < mostFiles && bytes < mostBytes) continue;
    yield batch;
    [bytes, batch] = [0, []];
  }
  if (batch.length > 0) yield batch;
}

/** Yields what `read` returns for each item, in order, and reads further items in the meantime. */
async function* readAhead<T, R>(items: Iterable<T>, read: (item: T) => Promise<R>): AsyncGenerator<R> {
  const started: Promise<R>[] = [];
  for (const item of items) {
    const reading = read(item);
    // A search that ends early leaves it unread.
    reading.catch(() => undefined);
    if (started.push(reading) < AHEAD) continue;
    yield (await started.shift()) as R;
  }
  for (const reading of started) yield await reading;
}

/** Number of files that rules left out, if any. */
const ignoredOf = (count: number): { ignored?: number } => (count === 0 ? {} : { ignored: count });

/** Runs the tools that read files: ls, read and search. */
export class ReadTools {
  constructor(
    private readonly deps: ReadToolsDeps,
    private readonly access: FileAccess,
  ) {}

  async list(call: NativeCall, input: FileInput['ls']): Promise<string> {
    const { path, recursive, bin, ignored, from, limit } = input;
    const { workspace } = call;
    const treeId = await this.access.treeOf(call);
    const folder = normalizeFolder(path);
    const { read, chats } = await this.access.rootsOf(call);
    const all = await this.deps.workspaceFiles.list(workspace, treeId, { folder, bin, chats });
    const visible = all.files.filter((file) => isWithin(read, file.path));
    const allowed = bin || ignored ? visible : await this.withoutIgnored(workspace, treeId, visible, folder);
    const entries = recursive || bin ? allowed : oneLevel(allowed, folder);
    const page = entries.slice(from - 1, from - 1 + limit);
    const shown = await this.deps.workspaceFiles.withSizes(workspace, treeId, page);
    const lines = shown.map((entry) =>
      entry.kind === 'folder'
        ? `${entry.path}/\t${entry.files ?? 0} files`
        : `${entry.path}\t${entry.size} bytes`,
    );
    const isTruncated = from - 1 + shown.length < entries.length;
    const header = {
      version: all.version,
      total: entries.length,
      returned: shown.length,
      truncated: isTruncated,
      ...ignoredOf(visible.length - allowed.length),
    };
    return resultOf(header, lines.join('\n'));
  }

  async read(call: NativeCall, { path: given, from, lines: count }: FileInput['read']): Promise<string> {
    const { workspace } = call;
    const path = await this.access.allow(call, 'read', given);
    const opened = await this.deps.workspaceFiles.open(workspace, await this.access.treeOf(call), path);
    const { entry } = opened;
    const bytes = await opened.readBytes();
    const about = { path, digest: entry.digest, bytes: entry.size };
    if (isBinary(bytes)) return resultOf({ ...about, binary: true });
    const { text, shown, isClipped, total } = numberLines(bytes, from, count);
    const isWhole = from === 1 && shown === total && !isClipped;
    const seen = entry.is_virtual ? [] : [{ path, digest: entry.digest, whole: isWhole }];
    const header = { ...about, from, returned: shown, lines: total, truncated: !isWhole, seen };
    return resultOf(header, text);
  }

  async search(call: NativeCall, input: FileInput['search']): Promise<string> {
    const { workspace } = call;
    const treeId = await this.access.treeOf(call);
    const folder = normalizeFolder(input.path);
    const { read, chats } = await this.access.rootsOf(call);
    const { files, version } = await this.deps.workspaceFiles.list(workspace, treeId, { folder, chats });
    const from = folder === '' ? 0 : folder.length + 1;
    const allowed = files.filter(({ path }) => isWithin(read, path));
    const shown = input.ignored ? allowed : allowed.filter(({ path }) => !LEFT_OUT.test(path.slice(from)));
    const searched = input.ignored ? shown : await this.withoutIgnored(workspace, treeId, shown, folder);
    // The database finds an exact text faster than its bytes are sent.
    const isExact = !input.regex && !input.ignore_case;
    const bytes = isExact
      ? this.candidatesOf(workspace, treeId, searched, input.query)
      : this.bytesOf(workspace, treeId, searched);
    const result = await searchFiles(workspace, bytes, {
      ...{ query: input.query, regex: input.regex, ignoreCase: input.ignore_case },
      limit: input.from - 1 + input.limit,
    });
    const { isTruncated } = result;
    const found = result.found.slice(input.from - 1);
    const header = {
      ...{ version, files: searched.length, searched: result.searched, binary: result.binary },
      // The total is known once the search has reached the end.
      ...(isTruncated ? { next: input.from + found.length } : { total: result.found.length }),
      ...{ returned: found.length, truncated: isTruncated },
      ...(result.cutLines === 0 ? {} : { cut_lines: result.cutLines }),
      ...ignoredOf(allowed.length - searched.length),
    };
    return resultOf(header, found.map(({ path, line, text }) => `${path}:${line}\t${text}`).join('\n'));
  }

  /** Leaves out what the `.gitignore` files of the tree name. A thread applies their rules. */
  private async withoutIgnored<T extends { readonly path: string }>(
    workspace: string,
    treeId: string,
    listed: readonly T[],
    root: string,
  ): Promise<readonly T[]> {
    const { files } = await this.deps.files.read(workspace, treeId);
    const named: FileEntry[] = [];
    for (const file of files.values())
      if (IGNORE_FILE.test(file.path) && file.size <= MAX_IGNORE_BYTES && named.length < MAX_IGNORE_FILES)
        named.push(file);
    if (named.length === 0) return listed;
    const stored = await this.deps.blobs.readMany(workspace, [...new Set(named.map(({ digest }) => digest))]);
    const rules = named.map(({ path, digest }) => {
      const folder = path.slice(0, Math.max(0, path.lastIndexOf('/')));
      return [folder, new Uint8Array(stored.get(digest) ?? NO_BYTES)] as const;
    });
    const input = { files: rules, paths: listed.map(({ path }) => path), root };
    const work = { name: 'findIgnored', input, owner: workspace, deadlineMs: TEXT_DEADLINE_MS } as const;
    const ignored = new Set(await toolJobs.run(work));
    return listed.filter((_, index) => !ignored.has(index));
  }

  /** Returns all files in order; those that cannot have the text without their bytes. */
  private async *candidatesOf(
    workspace: string,
    treeId: string,
    files: readonly ListedFile[],
    text: string,
  ): AsyncGenerator<SearchedFile[]> {
    const query = Buffer.from(text);
    const compare = async (batch: ListedFile[]) => {
      const digests = [...new Set(batch.flatMap(({ digest }) => digest ?? []))];
      return { batch, hits: await this.deps.blobs.findContaining(workspace, digests, query) };
    };
    const batches = batchesOf(files, FIND_BATCH_FILES, FIND_BATCH_BYTES);
    for await (const { batch, hits } of readAhead(batches, compare)) {
      const hitOf = ({ digest }: ListedFile) => (digest === null ? 'text' : hits.get(digest));
      const none = batch.filter((file) => hitOf(file) !== 'text');
      yield none.map((file) => ({ path: file.path, bytes: hitOf(file) === 'binary' ? BINARY : NO_BYTES }));
      const found = batch.filter((file) => hitOf(file) === 'text');
      yield* this.bytesOf(workspace, treeId, found);
    }
  }

  private async *bytesOf(
    workspace: string,
    treeId: string,
    files: readonly ListedFile[],
  ): AsyncGenerator<SearchedFile[]> {
    for (const batch of batchesOf(files, SEARCH_BATCH_FILES, SEARCH_BATCH_BYTES)) {
      const digests = batch.flatMap(({ digest }) => digest ?? []);
      const stored = await this.deps.blobs.readMany(workspace, [...new Set(digests)]);
      yield await Promise.all(
        batch.map(async ({ path, digest }) => {
          const own = digest === null ? undefined : stored.get(digest);
          if (own) return { path, bytes: own };
          const opening = this.deps.workspaceFiles.open(workspace, treeId, path);
          const reading = opening.then((opened) => opened.readBytes());
          const bytes = await reading.catch((error: unknown) => {
            // Erased bytes have no text to find. A chat may be deleted after it was listed.
            if (isAppError(error) && GONE.has(error.code)) return NO_BYTES;
            throw error;
          });
          return { path, bytes };
        }),
      );
    }
  }
}
