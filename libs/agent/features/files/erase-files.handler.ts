import { Controller, Inject } from '@nestjs/common';
import { eraseFiles, fileErasuresStream } from '@antiphon/contracts/agent';
import type { FileCause, FileErasureEvent } from '@antiphon/contracts/agent';
import { isVirtualPath, normalizePath } from '@antiphon/agent-domain';
import type { FileEntry } from '@antiphon/agent-domain';
import type { BlobStore } from '@antiphon/database';
import type { EventStore } from '@antiphon/event-store';
import { invalid, isoTime, notFound, rejected } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';
import { AGENT_SERVICES } from '../agent.tokens.js';
import { fileErasuresIdOf, fileTreeIdOf } from '../derived-ids.js';
import { toNewEvent } from '../event-envelope.js';
import { readHistory } from './file-history.js';
import type { FileTrees } from './file-trees.js';
import type { Files } from './files.js';

type Request = z.output<typeof eraseFiles.request>;
type Reply = z.output<typeof eraseFiles.reply>;

export interface EraseFilesDeps {
  readonly store: EventStore;
  readonly workspaceFiles: Pick<Files, 'treeIdOf' | 'change'>;
  readonly files: FileTrees;
  readonly blobs: Pick<BlobStore, 'sizes' | 'erasedOf' | 'erase' | 'digestsOfPath'>;
  readonly clock: Clock;
  readonly ids: Ids;
}

/** Digests of a request, and those of the same path that stay. */
interface Subject {
  readonly digests: readonly string[];
  readonly kept?: readonly string[];
}

const PAGE = 1_000;

/** Handles `cmd.agent.file.erase`. The fact comes before the bytes: a repeat or the sweep ends it. */
@Controller()
export class EraseFiles {
  constructor(@Inject(AGENT_SERVICES) private readonly deps: EraseFilesDeps) {}

  @HandleRequest(eraseFiles)
  async handle(request: Request): Promise<Reply> {
    const { workspace, session, actor } = request;
    const { workspaceFiles, blobs } = this.deps;
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
    await this.record(request, cause, erased, sizes);
    await blobs.erase(workspace, erased);
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
      const { files } = await this.deps.files.read(workspace, treeId, version);
      const entry = files.get(path);
      if (!entry) throw notFound('FILE.NOT_FOUND', `there was no file "${path}" at version ${version}`);
      return { digests: [entry.digest] };
    }
    const { names } = await this.deps.files.read(workspace, treeId);
    if ([...names.values()].some((name) => name.path === path && name.files > 0))
      throw rejected('FILE.IS_FOLDER', `"${path}" is a folder; erase its files`);
    const own = await this.readDigests(workspace, treeId, path);
    const everywhere = await this.deps.blobs.digestsOfPath(workspace, path);
    const digests = session === undefined ? [...new Set([...own, ...everywhere])] : own;
    if (digests.length === 0) throw notFound('FILE.NOT_FOUND', `there was no file "${path}"`);
    return { digests, kept: everywhere.filter((one) => !digests.includes(one)) };
  }

  /** Returns the digests of all versions of a file, also of those that had another path. */
  private async readDigests(workspace: string, treeId: string, path: string): Promise<string[]> {
    const { store, files: trees } = this.deps;
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
    let having: FileEntry[] = [];
    await this.deps.workspaceFiles.change({ workspace, treeId, cause }, ({ files }) => {
      having = [...files.values()].filter(({ digest }) => digests.has(digest));
      return having.map(({ path, digest }) => ({ op: 'delete', path, expect: digest }));
    });
    return having.map(({ path }) => path);
  }

  private async record(
    { workspace, reason }: Request,
    cause: FileCause,
    digests: readonly string[],
    sizes: ReadonlyMap<string, number>,
  ): Promise<void> {
    if (digests.length === 0) return;
    const { store, clock, ids } = this.deps;
    const at = isoTime(clock);
    const events = digests.map((digest) => {
      const data = { cause, at, digest, size: sizes.get(digest) ?? 0, reason: reason ?? null };
      const fact: FileErasureEvent = { type: 'FileBytesErased', schemaVersion: 1, data };
      return toNewEvent(fact, ids);
    });
    const streamId = fileErasuresStream(fileErasuresIdOf(workspace));
    await store.append({ workspace, streams: [{ streamId, expectedVersion: 'any', events }] });
  }
}
