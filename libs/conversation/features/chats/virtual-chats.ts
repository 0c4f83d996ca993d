import { CHAT_SUFFIX, ChatTranscript, sessionStream, toMarkdown } from '@antiphon/contracts/agent';
import type { ChatView, SessionEvent } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import type { EventStore } from '@antiphon/event-store';
import { createBoundedMap } from '@antiphon/kernel';
import { fileTreeIdOf } from '@antiphon/agent-log';
import type { VirtualFile, VirtualFiles } from '@antiphon/files-features';
import type { ChatStore, DeletedPart } from './chat-store.js';

/** Number of chats in one read of the log. */
const PAGE = 200;
/** Maximum number of chats in a list of files. */
const MAX_LISTED = 10_000;
/** Events of one read of a session. */
const EVENTS = 1_000;
/** Maximum number of cached sizes, and of chats that are rendered at once for a list. */
const MAX_SIZES = 10_000;
const CONCURRENT = 8;

interface KnownSize {
  readonly version: number;
  readonly revision: number;
  /** Number of deleted parts, which an old version hides too. */
  readonly deletions: number;
  readonly size: number;
}

/**
 * Chats as files of their workspace, built on read. Sizes are cached by the versions of the chats,
 * so that a list renders only chats that have changed.
 */
export class VirtualChats implements VirtualFiles {
  private readonly known = createBoundedMap<KnownSize>(MAX_SIZES);

  constructor(
    private readonly chats: Pick<
      ChatStore,
      'list' | 'findByName' | 'versionAt' | 'versionsOf' | 'deletionsOf'
    >,
    private readonly store: Pick<EventStore, 'readStreamPage'>,
  ) {}

  async list(workspace: string, treeId: string, until?: number): Promise<readonly string[]> {
    return (await this.listChats(workspace, treeId, until)).map(({ path }) => path);
  }

  async find(workspace: string, treeId: string, path: string, until?: number): Promise<VirtualFile | null> {
    const chat = await this.findChat(workspace, treeId, path, until);
    if (!chat) return null;
    const version = await this.versionOf(workspace, chat, until);
    const deleted = await this.deletedOf(workspace, chat);
    return { path, size: await this.sizeOf(workspace, chat, version, deleted), chat: { ...chat, version } };
  }

  async sizes(
    workspace: string,
    treeId: string,
    paths: readonly string[],
    until?: number,
  ): Promise<ReadonlyMap<string, number>> {
    if (paths.length === 0) return new Map();
    const wanted = new Set(paths);
    const chats = await this.listChats(workspace, treeId, until);
    const listed = chats.filter(({ path }) => wanted.has(path));
    const sessions = listed.map(({ sessionId }) => sessionId);
    const versions = until === undefined ? await this.chats.versionsOf(workspace, sessions) : null;
    const deleted = await this.chats.deletionsOf(workspace, sessions);
    const sizes = new Map<string, number>();
    for (let from = 0; from < listed.length; from += CONCURRENT)
      await Promise.all(
        listed.slice(from, from + CONCURRENT).map(async (chat) => {
          const version = versions?.get(chat.sessionId) ?? (await this.versionOf(workspace, chat, until));
          const parts = deleted.get(chat.sessionId) ?? [];
          sizes.set(chat.path, await this.sizeOf(workspace, chat, version, parts));
        }),
      );
    return sizes;
  }

  async render(workspace: string, treeId: string, path: string, until?: number): Promise<Uint8Array | null> {
    const chat = await this.findChat(workspace, treeId, path, until);
    if (!chat) return null;
    const version = await this.versionOf(workspace, chat, until);
    return this.renderAt(workspace, chat, version, await this.deletedOf(workspace, chat));
  }

  private async deletedOf(workspace: string, { sessionId }: ChatView): Promise<readonly DeletedPart[]> {
    return (await this.chats.deletionsOf(workspace, [sessionId])).get(sessionId) ?? [];
  }

  private async listChats(workspace: string, treeId: string, until?: number): Promise<readonly ChatView[]> {
    const chats: ChatView[] = [];
    // The tree of a fork has no chats: they are sessions of the workspace.
    if (treeId !== fileTreeIdOf(workspace)) return chats;
    for (let after = 0; chats.length < MAX_LISTED;) {
      const page = await this.chats.list(workspace, after, PAGE, until);
      chats.push(...page.map(({ chat }) => chat));
      if (page.length < PAGE) break;
      after = page.at(-1)?.position ?? after;
    }
    return chats;
  }

  private async findChat(
    workspace: string,
    treeId: string,
    path: string,
    until?: number,
  ): Promise<ChatView | null> {
    if (treeId !== fileTreeIdOf(workspace) || !path.endsWith(CHAT_SUFFIX)) return null;
    return this.chats.findByName(workspace, path.slice(0, -CHAT_SUFFIX.length), until);
  }

  private versionOf(workspace: string, { sessionId }: ChatView, until?: number): Promise<number> {
    return this.chats.versionAt(workspace, sessionId, until ?? Number.MAX_SAFE_INTEGER);
  }

  private async sizeOf(
    workspace: string,
    chat: ChatView,
    version: number,
    deleted: readonly DeletedPart[],
  ): Promise<number> {
    const { sessionId, revision } = chat;
    const key = `${workspace}\n${sessionId}`;
    const known = this.known.get(key);
    const deletions = deleted.length;
    if (known?.version === version && known.revision === revision && known.deletions === deletions)
      return known.size;
    const { byteLength: size } = await this.renderAt(workspace, chat, version, deleted);
    // A list of an old version leaves the newest size.
    if (!known || known.version <= version) this.known.put(key, { version, revision, deletions, size });
    return size;
  }

  private async renderAt(
    workspace: string,
    chat: ChatView,
    version: number,
    deleted: readonly DeletedPart[],
  ): Promise<Uint8Array> {
    const transcript = new ChatTranscript();
    for (let hasMore = version > 0; hasMore;) {
      const options = { fromVersion: transcript.version + 1, beforeVersion: version + 1, limit: EVENTS };
      const page = await this.store.readStreamPage(workspace, sessionStream(chat.sessionId), options);
      for (const recorded of page.events)
        transcript.apply(upcast(recorded) as unknown as SessionEvent, recorded.streamVersion);
      hasMore = page.hasMore;
    }
    for (const { turnId, part, at } of deleted) transcript.delete(turnId, part, at);
    return Buffer.from(toMarkdown(transcript.toDocument(chat)));
  }
}
