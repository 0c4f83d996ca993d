import { CHAT_SUFFIX, ChatTranscript, sessionStream, toMarkdown } from '@antiphon/contracts/agent';
import type { ChatView, SessionEvent } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import type { EventStore } from '@antiphon/event-store';
import { fileTreeIdOf } from '../derived-ids.js';
import type { VirtualFile, VirtualFiles } from '../files/files.js';
import type { ChatStore } from './chat-store.js';

/** Number of chats in one read of the log. */
const PAGE = 200;
/** Maximum number of chats in a list of files. */
const MAX_LISTED = 10_000;
/** Events of one read of a session. */
const EVENTS = 1_000;

/**
 * Chats as files of their workspace, built on read. A list gives the size 0: only a read renders
 * the text.
 */
export class VirtualChats implements VirtualFiles {
  constructor(
    private readonly chats: Pick<ChatStore, 'list' | 'findByName'>,
    private readonly store: Pick<EventStore, 'readStreamPage'>,
  ) {}

  async list(workspace: string, treeId: string): Promise<readonly VirtualFile[]> {
    const files: VirtualFile[] = [];
    // The tree of a fork has no chats: they are sessions of the workspace.
    if (treeId !== fileTreeIdOf(workspace)) return files;
    for (let after = 0; files.length < MAX_LISTED;) {
      const page = await this.chats.list(workspace, after, PAGE);
      files.push(...page.map(({ chat }) => ({ path: chat.path, size: 0 })));
      if (page.length < PAGE) break;
      after = page.at(-1)?.position ?? after;
    }
    return files;
  }

  async has(workspace: string, treeId: string, path: string): Promise<boolean> {
    return (await this.find(workspace, treeId, path)) !== null;
  }

  async render(workspace: string, treeId: string, path: string): Promise<Uint8Array | null> {
    const chat = await this.find(workspace, treeId, path);
    return chat ? Buffer.from(toMarkdown((await this.read(workspace, chat)).toDocument(chat))) : null;
  }

  private async find(workspace: string, treeId: string, path: string): Promise<ChatView | null> {
    if (treeId !== fileTreeIdOf(workspace) || !path.endsWith(CHAT_SUFFIX)) return null;
    return this.chats.findByName(workspace, path.slice(0, -CHAT_SUFFIX.length));
  }

  private async read(workspace: string, { sessionId }: ChatView): Promise<ChatTranscript> {
    const transcript = new ChatTranscript();
    for (let hasMore = true; hasMore;) {
      const options = { fromVersion: transcript.version + 1, limit: EVENTS };
      const page = await this.store.readStreamPage(workspace, sessionStream(sessionId), options);
      for (const recorded of page.events)
        transcript.apply(upcast(recorded) as unknown as SessionEvent, recorded.streamVersion);
      hasMore = page.hasMore;
    }
    return transcript;
  }
}
