import { Controller, Inject } from '@nestjs/common';
import { BlobStore } from '@antiphon/database';
import { CLOCK, EVENT_STORE, IDS } from '@antiphon/service-host';
import { FileTrees } from './file-trees.js';
import { Files } from './files.js';
import { eraseFiles, fileErasuresStream, fileTreeStream } from '@antiphon/contracts/agent';
import type { FileCause, FileErasureEvent } from '@antiphon/contracts/agent';
import { isVirtualPath, normalizePath } from '@antiphon/files-domain';
import type { FileEntry } from '@antiphon/files-domain';
import { createFactLog } from '@antiphon/event-store';
import type { EventStore } from '@antiphon/event-store';
import { invalid, isoTime, notFound, rejected } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';
import { fileErasuresIdOf, fileTreeIdOf, toNewEvent } from '@antiphon/agent-log';
import { readHistory } from './file-history.js';

type Request = z.output<typeof eraseFiles.request>;
type Reply = z.output<typeof eraseFiles.reply>;

/** Digests of a request, and those of the same path that stay. */
interface Subject {
  readonly digests: readonly string[];
  readonly kept?: readonly string[];
}

const PAGE = 1_000;
/** Maximum number of facts in one append of an erasure. */
const MAX_FACTS = 500;
const TREE_STREAM = fileTreeStream('');

/** Handles `cmd.agent.file.erase`. The fact comes before the bytes: a repeat or the sweep ends it. */
@Controller()
export class EraseFiles {
  constructor(
    @Inject(Files) private readonly workspaceFiles: Files,
    @Inject(FileTrees) private readonly files: FileTrees,
    @Inject(EVENT_STORE) private readonly store: EventStore,
    @Inject(BlobStore) private readonly blobs: BlobStore,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(IDS) private readonly ids: Ids,
  ) {}

  @HandleRequest(eraseFiles)
  async handle(request: Request): Promise<Reply> {
    const { workspace, session, actor } = request;
    const { workspaceFiles, blobs } = this;
    const treeId = await workspaceFiles.treeIdOf(workspace, session);
    const { digests, kept = [] } = await this.digestsOf(request, treeId);
    const known = await blobs.erasedOf(workspace, digests);
    const sizes = await blobs.sizes(workspace, digests);
    if (request.digest !== undefined && known.size === 0 && sizes.size === 0)
      throw notFound('FILE.NO_BYTES', `the bytes of ${request.digest} are not stored`);
    const cause: FileCause = { actor, ...(session === undefined ? {} : { sessionId: session }) };
    const deleted = await this.deleteFiles(workspace, treeId, cause, new Set(digests));
    // The copy on disk is of the workspace's tree, which may have the bytes of a fork.
    const own = fileTreeIdOf(workspace);
    if (own !== treeId) deleted.push(...(await this.deleteFiles(workspace, own, cause, new Set(digests))));
    const erased = digests.filter((digest) => !known.has(digest));
    for (let from = 0; from < erased.length; from += MAX_FACTS) {
      const some = erased.slice(from, from + MAX_FACTS);
      await this.record(request, cause, some, sizes);
      await blobs.erase(workspace, some);
    }
    const stillStored = (await blobs.sizes(workspace, kept)).keys();
    return { erased, already: known.size, deleted: [...new Set(deleted)], kept: [...stillStored] };
  }

  private async digestsOf(request: Request, treeId: string): Promise<Subject> {
    const { workspace, session, path: given, version, digest } = request;
    if ((given === undefined) === (digest === undefined))
      throw invalid('FILE.INVALID_PATH', 'expected a path or a digest');
    if (digest !== undefined) return { digests: [digest] };
    const path = normalizePath(given ?? '');
    if (isVirtualPath(path))
      throw rejected(
        'FILE.VIRTUAL',
        `"${path}" is built on read. What to do: delete the messages of the chat`,
      );
    if (version !== undefined) {
      const { files } = await this.files.read(workspace, treeId, version);
      const entry = files.get(path);
      if (!entry) throw notFound('FILE.NOT_FOUND', `there was no file "${path}" at version ${version}`);
      return { digests: [entry.digest] };
    }
    const { names } = await this.files.read(workspace, treeId);
    if ([...names.values()].some((name) => name.path === path && name.files > 0))
      throw rejected('FILE.IS_FOLDER', `"${path}" is a folder; erase its files`);
    const own = await this.readDigests(workspace, treeId, path);
    const everywhere = await this.readDigestsOfForks(workspace, treeId, path);
    const digests = session === undefined ? [...new Set([...own, ...everywhere])] : own;
    if (digests.length === 0) throw notFound('FILE.NOT_FOUND', `there was no file "${path}"`);
    return { digests, kept: [...everywhere].filter((one) => !digests.includes(one)) };
  }

  /** Returns the digests of all versions of a file in the trees that ever had its path. */
  private async readDigestsOfForks(workspace: string, own: string, path: string): Promise<Set<string>> {
    const { digests, streams } = await this.blobs.findPath(workspace, path);
    for (const stream of streams) {
      const treeId = stream.startsWith(TREE_STREAM) ? stream.slice(TREE_STREAM.length) : own;
      if (treeId === own) continue;
      for (const digest of await this.readDigests(workspace, treeId, path)) digests.add(digest);
    }
    return digests;
  }

  /** Returns the digests of all versions of a file, also of those that had another path. */
  private async readDigests(workspace: string, treeId: string, path: string): Promise<string[]> {
    const { store, files: trees } = this;
    const found = new Set<string>();
    for (let before: number | null | undefined; before !== null;) {
      const query = { workspace, treeId, path, limit: PAGE, before };
      const { changes, next } = await readHistory({ store, trees }, query);
      const digests = changes.flatMap(({ digest, before: old }) => [digest, old]);
      for (const digest of digests) if (digest !== null) found.add(digest);
      before = next;
    }
    return [...found];
  }

  /** Moves the files to the bin that have such bytes now, so that no copy on disk keeps them. */
  private async deleteFiles(
    workspace: string,
    treeId: string,
    cause: FileCause,
    digests: ReadonlySet<string>,
  ): Promise<string[]> {
    const deleted: string[] = [];
    let some: FileEntry[] = [];
    do {
      await this.workspaceFiles.change({ workspace, treeId, cause }, ({ files }) => {
        some = [...files.values()].filter(({ digest }) => digests.has(digest)).slice(0, MAX_FACTS);
        return some.map(({ path, digest }) => ({ op: 'delete', path, expect: digest }));
      });
      deleted.push(...some.map(({ path }) => path));
    } while (some.length === MAX_FACTS);
    return deleted;
  }

  private async record(
    { workspace, reason }: Request,
    cause: FileCause,
    digests: readonly string[],
    sizes: ReadonlyMap<string, number>,
  ): Promise<void> {
    const { store, clock, ids } = this;
    const at = isoTime(clock);
    const events = digests.map((digest) => {
      const data = { cause, at, digest, size: sizes.get(digest) ?? 0, reason: reason ?? null };
      const fact: FileErasureEvent = { type: 'FileBytesErased', schemaVersion: 1, data };
      return toNewEvent(fact, ids);
    });
    const log = createFactLog(store, (owner) => fileErasuresStream(fileErasuresIdOf(owner)));
    await log.appendAt(workspace, workspace, 'any', events);
  }
}
