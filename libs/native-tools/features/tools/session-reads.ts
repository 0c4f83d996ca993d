import type pg from 'pg';
import { sessionStream } from '@antiphon/contracts/agent';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
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

const headerOf = (line: string): SeenHeader => {
  try {
    return JSON.parse(line) as SeenHeader;
  } catch {
    return {};
  }
};

/** The text of a result stays in the database: its first line says what the session has seen. */
const CALLS_SQL = `select stream_version as version, type, data ->> 'callId' as "callId", data ->> 'name' as name,
    case when type = 'ToolCallCompleted' then split_part(data ->> 'content', e'\\n', 1) end as header
  from events where workspace = $1 and stream_id = $2 and stream_version > $3
    and type in ('ToolCallRequested', 'ToolCallCompleted')
  order by stream_version limit $4`;

interface CallRow {
  readonly version: string;
  readonly type: 'ToolCallRequested' | 'ToolCallCompleted';
  readonly callId: string;
  readonly name: string | null;
  readonly header: string | null;
}

/** Folds the tool calls of sessions into the files that each session has read. */
export class SessionReads {
  private readonly folds = createBoundedMap<SessionFold>(500);

  constructor(private readonly pool: pg.Pool) {}

  /** Returns the files that a session has seen, by path. */
  async read(workspace: string, sessionId: string): Promise<ReadonlyMap<string, SeenFile>> {
    const key = `${workspace}\n${sessionId}`;
    const fold = this.folds.get(key) ?? { version: 0, calls: new Map(), files: new Map() };
    this.folds.put(key, fold);
    for (let hasMore = true; hasMore;) {
      const rows = await this.readCalls(workspace, sessionId, fold.version);
      for (const row of rows) {
        // A second reader of the same session may have folded the event.
        if (Number(row.version) <= fold.version) continue;
        fold.version = Number(row.version);
        advance(fold, row);
      }
      hasMore = rows.length === PAGE;
    }
    return fold.files;
  }

  private async readCalls(workspace: string, sessionId: string, after: number): Promise<CallRow[]> {
    const values = [workspace, sessionStream(sessionId), after, PAGE];
    try {
      const query = { name: 'agent_session_calls', text: CALLS_SQL, values };
      return (await inWorkspace(this.pool, workspace).query<CallRow>(query)).rows;
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }
}

const advance = ({ calls, files }: SessionFold, { type, callId, name, header }: CallRow): void => {
  if (type === 'ToolCallRequested') {
    if (name !== null && TOOLS.has(name)) calls.set(callId, name);
    return;
  }
  if (!calls.delete(callId)) return;
  for (const { path, digest, whole } of headerOf(header ?? '').seen ?? [])
    files.set(path, { digest, isWhole: whole });
};
