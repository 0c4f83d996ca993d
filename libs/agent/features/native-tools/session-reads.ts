import { sessionStream } from '@antiphon/contracts/agent';
import type { EventStore } from '@antiphon/event-store';
import { createBoundedMap } from '@antiphon/kernel';

/** The last version of a file that a session has seen. */
export interface SeenFile {
  readonly digest: string;
  /** False if a part of it was not shown. */
  readonly isWhole: boolean;
}

/** First line of the result of a tool for files: what the result is about. */
export interface SeenHeader {
  readonly seen?: readonly { readonly path: string; readonly digest: string; readonly whole: boolean }[];
}

interface SessionFold {
  version: number;
  /** Tools of open calls. */
  readonly calls: Map<string, string>;
  readonly files: Map<string, SeenFile>;
}

const TOOLS: ReadonlySet<string> = new Set(['read', 'write', 'edit', 'move']);
const PAGE = 1_000;

const headerOf = (content: string): SeenHeader => {
  const [line = ''] = content.split('\n', 1);
  try {
    return JSON.parse(line) as SeenHeader;
  } catch {
    return {};
  }
};

/** Folds the tool calls of sessions into the files that each session has read. */
export class SessionReads {
  private readonly folds = createBoundedMap<SessionFold>(500);

  constructor(private readonly store: Pick<EventStore, 'readStreamPage'>) {}

  /** Returns the files that a session has seen, by path. */
  async read(workspace: string, sessionId: string): Promise<ReadonlyMap<string, SeenFile>> {
    const key = `${workspace}\n${sessionId}`;
    const fold = this.folds.get(key) ?? { version: 0, calls: new Map(), files: new Map() };
    this.folds.put(key, fold);
    for (let hasMore = true; hasMore;) {
      const options = { fromVersion: fold.version + 1, limit: PAGE };
      const page = await this.store.readStreamPage(workspace, sessionStream(sessionId), options);
      for (const { type, data, streamVersion } of page.events) {
        // A second reader of the same session may have folded the event.
        if (streamVersion <= fold.version) continue;
        fold.version = streamVersion;
        advance(fold, type, data);
      }
      ({ hasMore } = page);
    }
    return fold.files;
  }
}

const advance = (
  { calls, files }: SessionFold,
  type: string,
  data: Readonly<Record<string, unknown>>,
): void => {
  const callId = String(data['callId']);
  if (type === 'ToolCallRequested' && TOOLS.has(String(data['name'])))
    calls.set(callId, String(data['name']));
  if (type !== 'ToolCallCompleted' || !calls.delete(callId)) return;
  for (const { path, digest, whole } of headerOf(String(data['content'])).seen ?? [])
    files.set(path, { digest, isWhole: whole });
};
