import { Controller, Inject } from '@nestjs/common';
import type { EventStore } from '@antiphon/event-store';
import { EVENT_STORE } from '@antiphon/service-host';
import { FileTrees } from './file-trees.js';
import { Files } from './files.js';
import { changeFiles, checkFileWrite, listFiles, readFileHistory, statFile } from '@antiphon/contracts/agent';
import type { FileEntryView } from '@antiphon/contracts/agent';
import { encodeCursor } from '@antiphon/contracts/log';
import type { z } from 'zod';
import { isVirtualPath, normalizeFolder, normalizePath } from '@antiphon/files-domain';

import { digestOf, positionOfCursor } from '@antiphon/event-store';
import { forbidden } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { readHistory } from './file-history.js';

/** Returns the file that changed last. One that is built on read changes by no version of the tree. */
const newestOf = (known: FileEntryView | undefined, file: FileEntryView): FileEntryView =>
  known && (file.is_virtual || known.version >= file.version) ? known : file;

/** Selects entries whose path below a folder has a text, without regard to case. */
const named = (entries: readonly FileEntryView[], folder: string, text: string): FileEntryView[] => {
  const wanted = text.toLowerCase();
  return entries.filter(({ path }) => path.slice(folder.length).toLowerCase().includes(wanted));
};

const withFoldersFirst = (entries: readonly FileEntryView[]): FileEntryView[] => [
  ...entries.filter(({ kind }) => kind === 'folder'),
  ...entries.filter(({ kind }) => kind === 'file'),
];

/** Returns the files and folders of one level. */
export const oneLevel = (files: readonly FileEntryView[], folder: string): FileEntryView[] => {
  const start = folder === '' ? 0 : folder.length + 1;
  const entries = new Map<string, FileEntryView>();
  for (const file of files) {
    const end = file.path.indexOf('/', start);
    if (end === -1) {
      entries.set(file.path, file);
      continue;
    }
    const path = file.path.slice(0, end);
    const known = entries.get(path);
    const { changedAt = null, changedBy = null, version } = newestOf(known, file);
    entries.set(path, {
      ...{ path, kind: 'folder', size: (known?.size ?? 0) + file.size, digest: null, mode: 0o755 },
      ...{ version, files: (known?.files ?? 0) + 1, is_virtual: false, changedAt, changedBy },
    });
  }
  return [...entries.values()];
};

/** Throws `FILE.NOT_ALLOWED` for a chat that the caller may not read, also if there is none. */
const requireChats = (path: string, chats: boolean | undefined): void => {
  if (chats === false && isVirtualPath(normalizePath(path)))
    throw forbidden('FILE.NOT_ALLOWED', `"${path}" is a chat: reading it needs the permission sessions:read`);
};

/** Serves the files of workspaces to gateways. */
@Controller()
export class FilesHandler {
  constructor(
    @Inject(Files) private readonly workspaceFiles: Files,
    @Inject(FileTrees) private readonly files: FileTrees,
    @Inject(EVENT_STORE) private readonly store: EventStore,
  ) {}

  @HandleRequest(listFiles)
  async list(request: z.output<typeof listFiles.request>): Promise<z.input<typeof listFiles.reply>> {
    const { workspace, session, path, recursive, bin, limit, chats, q = '', position } = request;
    const treeId = await this.workspaceFiles.treeIdOf(workspace, session);
    const at = await this.versionOf(treeId, request);
    const folder = normalizeFolder(path);
    // Later pages are of the version of the first one only if the caller names it by `at`.
    const { version, files } = await this.workspaceFiles.list(workspace, treeId, {
      ...{ folder, at, bin, chats },
      until: position,
    });
    const found = named(recursive || bin ? files : oneLevel(files, folder), folder, q);
    const entries = request.foldersFirst ? withFoldersFirst(found) : found;
    const from = positionOfCursor(request.cursor) ?? 0;
    const page = entries.slice(from, from + limit);
    const shown = await this.workspaceFiles.withSizes(workspace, treeId, page, { at, until: position });
    const next = from + shown.length;
    const nextCursor = next < entries.length ? encodeCursor(next) : null;
    return { version, entries: shown, total: entries.length, nextCursor };
  }

  @HandleRequest(statFile)
  async stat(request: z.output<typeof statFile.request>): Promise<z.input<typeof statFile.reply>> {
    const { workspace, session, path, chats, position } = request;
    requireChats(path, chats);
    const treeId = await this.workspaceFiles.treeIdOf(workspace, session);
    const at = await this.versionOf(treeId, request);
    const { entry, version, chat } = await this.workspaceFiles.stat(workspace, treeId, path, {
      ...{ at, until: position },
    });
    return { version, file: entry, ...(chat ? { chat } : {}) };
  }

  @HandleRequest(changeFiles)
  async change(request: z.output<typeof changeFiles.request>): Promise<z.input<typeof changeFiles.reply>> {
    const { workspace, session, changes, actor, idempotencyKey: key } = request;
    const treeId = await this.workspaceFiles.treeIdOf(workspace, session);
    const cause = { actor, ...(session === undefined ? {} : { sessionId: session }) };
    const digest = digestOf({ treeId, changes });
    // A repeat finds its call in the tree, where its change would no longer be allowed.
    const callId = key === undefined ? undefined : digestOf({ actor, key, digest });
    return this.workspaceFiles.changeByRequest(
      {
        ...{ workspace, treeId, cause: { ...cause, ...(callId === undefined ? {} : { callId }) } },
        ...(key === undefined ? {} : { idempotency: { scope: `${actor}/file.change`, key, digest } }),
      },
      changes,
    );
  }

  @HandleRequest(checkFileWrite)
  async check(
    request: z.output<typeof checkFileWrite.request>,
  ): Promise<z.input<typeof checkFileWrite.reply>> {
    const { workspace, session, ...write } = request;
    const treeId = await this.workspaceFiles.treeIdOf(workspace, session);
    return { version: await this.workspaceFiles.checkWrite(workspace, treeId, write) };
  }

  @HandleRequest(readFileHistory)
  async history(
    request: z.output<typeof readFileHistory.request>,
  ): Promise<z.input<typeof readFileHistory.reply>> {
    const { workspace, session, path, limit, cursor } = request;
    const { workspaceFiles, store, files: trees } = this;
    const treeId = await workspaceFiles.treeIdOf(workspace, session);
    const at = await this.versionOf(treeId, request);
    const query = {
      workspace,
      treeId,
      path: normalizeFolder(path),
      limit,
      before: positionOfCursor(cursor) ?? (at === undefined ? undefined : at + 1),
    };
    const { changes, next } = await readHistory({ store, trees }, query);
    return { changes, nextCursor: next === null ? null : encodeCursor(next) };
  }

  /** Returns the version of a tree that a read names, by itself or by a position of the log. */
  private async versionOf(
    treeId: string,
    {
      workspace,
      at,
      position,
    }: { workspace: string; at?: number | undefined; position?: number | undefined },
  ): Promise<number | undefined> {
    if (at !== undefined || position === undefined) return at;
    return this.workspaceFiles.versionAt(workspace, treeId, position);
  }
}
