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
    const { size = 0, files: count = 0, version = 0 } = entries.get(path) ?? {};
    entries.set(path, {
      ...{ path, kind: 'folder', size: size + file.size, digest: null, mode: 0o755 },
      ...{ version: Math.max(version, file.version), files: count + 1, is_virtual: false },
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
    const { workspace, session, path, recursive, bin, at, limit, chats } = request;
    const treeId = await this.workspaceFiles.treeIdOf(workspace, session);
    const folder = normalizeFolder(path);
    // Later pages are of the version of the first one only if the caller names it by `at`.
    const { version, files } = await this.workspaceFiles.list(workspace, treeId, {
      folder,
      at,
      bin,
      chats,
    });
    const entries = recursive || bin ? files : oneLevel(files, folder);
    const from = positionOfCursor(request.cursor) ?? 0;
    const page = entries.slice(from, from + limit);
    const shown = await this.workspaceFiles.withSizes(workspace, treeId, page, at);
    const next = from + shown.length;
    const nextCursor = next < entries.length ? encodeCursor(next) : null;
    return { version, entries: shown, total: entries.length, nextCursor };
  }

  @HandleRequest(statFile)
  async stat(request: z.output<typeof statFile.request>): Promise<z.input<typeof statFile.reply>> {
    const { workspace, session, path, at, chats } = request;
    requireChats(path, chats);
    const treeId = await this.workspaceFiles.treeIdOf(workspace, session);
    const { entry, version, chat } = await this.workspaceFiles.stat(workspace, treeId, path, at);
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
    const query = {
      workspace,
      treeId,
      path: normalizeFolder(path),
      limit,
      before: positionOfCursor(cursor) ?? undefined,
    };
    const { changes, next } = await readHistory({ store, trees }, query);
    return { changes, nextCursor: next === null ? null : encodeCursor(next) };
  }
}
