import { join } from 'node:path';
import type pg from 'pg';
import type { FileLimits } from '@antiphon/files-domain';
import { fileTreeStream } from '@antiphon/contracts/agent';
import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import { acrossWorkspaces } from '@antiphon/database';
import type { Fence } from '@antiphon/event-store';
import type { Clock } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { fileTreeIdOf } from '@antiphon/agent-log';
import type { FileTreesPort } from '../trees/file-trees.js';
import { ignoreCopies } from './copy-mark.js';
import { DiskStates } from './disk-state.js';
import { SafeFolder } from './safe-folder.js';
import { WorkspaceFolder } from './workspace-folder.js';

// Reads one row for each workspace: the smallest one after the one before.
const WORKSPACES_SQL = `with recursive found as (
    (select workspace from stream_heads order by workspace limit 1)
    union all
    select (select h.workspace from stream_heads h where h.workspace > f.workspace order by h.workspace limit 1)
    from found f where f.workspace is not null)
  select workspace from found where workspace is not null`;
const VERSIONS_SQL = `select h.workspace, h.version from unnest($1::text[], $2::text[]) as wanted (workspace, stream_id)
  join stream_heads h on h.workspace = wanted.workspace and h.stream_id = wanted.stream_id`;

export interface WorkspaceFoldersOptions {
  /** Folder that has the folder of each workspace. */
  readonly folder: string;
  readonly trees: FileTreesPort;
  readonly pool: pg.Pool;
  readonly limits: (workspace: string) => FileLimits;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Token of the process that may record changes; null after it lost the lease. */
  readonly fence: () => Fence | null;
  /** True if files are executable where their tree has them so. Default: false. */
  readonly keepsExecutable?: boolean;
}

/** The folders of all workspaces, and what this program remembers about them. */
export class WorkspaceFolders {
  private states: { readonly store: DiskStates; readonly folder: SafeFolder } | null = null;

  constructor(private readonly options: WorkspaceFoldersOptions) {}

  /** Returns the workspaces that the log knows. */
  async find(): Promise<ReadonlySet<string>> {
    const { rows } = await acrossWorkspaces(this.options.pool).query<{ workspace: string }>({
      ...{ name: 'files_disk_workspaces', text: WORKSPACES_SQL },
    });
    return new Set([DEFAULT_WORKSPACE, ...rows.map((row) => row.workspace)]);
  }

  async open(workspace: string): Promise<WorkspaceFolder> {
    const { limits, folder, ...deps } = this.options;
    const { store: states } = await this.openStates();
    const own = { ...deps, states, limits: limits(workspace) };
    return new WorkspaceFolder(own, { workspace, root: join(folder, workspace) });
  }

  /** Returns the versions of the event streams of the workspaces' trees. */
  async readVersions(workspaces: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const streams = workspaces.map((workspace) => fileTreeStream(fileTreeIdOf(workspace)));
    const { rows } = await acrossWorkspaces(this.options.pool).query<{ workspace: string; version: string }>({
      ...{ name: 'files_disk_versions', text: VERSIONS_SQL, values: [workspaces, streams] },
    });
    return new Map(rows.map(({ workspace, version }) => [workspace, Number(version)]));
  }

  async close(): Promise<void> {
    await this.states?.folder.close();
    this.states = null;
  }

  private async openStates() {
    const own = join(this.options.folder, '.antiphon');
    if (this.states === null) {
      const folder = await SafeFolder.open(join(own, 'state'), join(own, 'partial'));
      await ignoreCopies(this.options.folder);
      this.states = { folder, store: new DiskStates(folder) };
    }
    return this.states;
  }
}
