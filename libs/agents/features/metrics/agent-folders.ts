import { mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AgentId } from '@antiphon/contracts/agent';
import { WorkspaceId } from '@antiphon/contracts/log';
import type { AppendRequest, AppendResult, EventStore } from '@antiphon/event-store';
import { invalid } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';

/** Folders of each agent: its own files, the projects that it works on, and its logs. */
export const AGENT_FOLDERS = ['.agent', 'projects', 'logs'] as const;

/** Maximum number of files that count for the size of a folder. */
const MAX_FILES = 10_000;

/** Creates and measures the folders `agents/<workspace>/<agentId>` of a service's home. */
export class AgentFolders {
  constructor(
    private readonly home: string,
    private readonly logger: Logger,
  ) {}

  /** Returns the folder of an agent. Throws for an id that is not safe in a path. */
  pathOf(workspace: string, agentId: string): string {
    if (!WorkspaceId.safeParse(workspace).success || !AgentId.safeParse(agentId).success)
      throw invalid('AGENT.INVALID_ID', 'this id of an agent cannot be the name of a folder');
    return join(this.home, 'agents', workspace, agentId);
  }

  /** Creates the folders of an agent, of mode 700. Existing ones stay as they are. */
  async create(workspace: string, agentId: string): Promise<void> {
    const folder = this.pathOf(workspace, agentId);
    for (const name of AGENT_FOLDERS) await mkdir(join(folder, name), { recursive: true, mode: 0o700 });
  }

  /** Creates the folders of an agent, or logs why it cannot. An agent works without them. */
  tryCreate(workspace: string, agentId: string): void {
    this.create(workspace, agentId).catch((err: unknown) =>
      this.logger.warn({ workspace, agentId, err }, 'agent folder not created'),
    );
  }

  /** Returns the bytes of an agent's files, of at most 10,000; 0 without a folder. */
  async measure(workspace: string, agentId: string): Promise<number> {
    let bytes = 0;
    let left = MAX_FILES;
    const folders = [this.pathOf(workspace, agentId)];
    for (let folder = folders.pop(); folder !== undefined && left > 0; folder = folders.pop()) {
      const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
      for (const entry of entries.slice(0, left)) {
        left--;
        const path = join(folder, entry.name);
        if (entry.isDirectory()) folders.push(path);
        else if (entry.isFile())
          bytes += await stat(path).then(
            ({ size }) => size,
            () => 0,
          );
      }
    }
    return bytes;
  }
}

/** Returns a store that creates the folders of each agent that becomes ready. */
export const createFoldersOnStart = (store: EventStore, folders: AgentFolders): EventStore => {
  const append = async (request: AppendRequest): Promise<AppendResult> => {
    const result = await store.append(request);
    for (const { type, data } of request.streams.flatMap(({ events }) => events))
      if (type === 'AgentReady' && typeof data['agentId'] === 'string')
        folders.tryCreate(request.workspace, data['agentId']);
    return result;
  };
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'append') return append;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
};
