import type { Principal } from '@antiphon/contracts/identity';
import type { IssuedWorkspace, WorkspaceView } from '@antiphon/contracts/keys';
import { conflict, type Clock } from '@antiphon/kernel';
import { inWorkspace, type OperationalClient, type WorkspaceRow } from '@antiphon/prisma-client';
import type { IdentityLog } from './identity-log.js';
import { UNFINISHED_MS, type KeyRegistry } from './key-registry.js';
import { assertAdministersInstallation } from './key-rights.js';

export interface WorkspacePage {
  readonly workspaces: WorkspaceView[];
  readonly nextCursor: string | null;
}

export interface WorkspaceRegistryOptions {
  readonly prisma: OperationalClient;
  readonly log: IdentityLog;
  readonly keys: KeyRegistry;
  readonly clock: Clock;
}

const viewOf = ({ workspace, name, createdBy, createdAt }: WorkspaceRow): WorkspaceView => ({
  id: workspace,
  name,
  createdBy,
  createdAt: createdAt.toISOString(),
});

/** Creates and lists workspaces. Only callers of the workspace `default` see others. */
export class WorkspaceRegistry {
  constructor(private readonly options: WorkspaceRegistryOptions) {}

  /**
   * Creates a workspace and its first admin key. Throws `GATEWAY.FORBIDDEN`,
   * `GATEWAY.WORKSPACE_EXISTS`.
   */
  async create(caller: Principal, id: string, name: string): Promise<IssuedWorkspace> {
    assertAdministersInstallation(caller, 'workspaces:manage');
    const row = await this.#insert(caller, id, name);
    const view = viewOf(row);
    const { name: stored, createdBy, createdAt } = view;
    await this.options.log.appendWorkspace(id, { workspaceId: id, name: stored, createdBy, createdAt });
    await inWorkspace(this.options.prisma, id, ({ workspace }) =>
      workspace.update({ where: { workspace: id }, data: { status: 'active' } }),
    );
    const key = await this.options.keys.create(caller, { name: 'first admin', role: 'admin', workspace: id });
    return { ...view, key };
  }

  /** Returns a page of the workspaces that the caller may see, by id. */
  list(
    caller: Principal,
    { limit, cursor }: { limit: number; cursor?: string | undefined },
  ): Promise<WorkspacePage> {
    return inWorkspace(this.options.prisma, caller.workspace, async ({ workspace }) => {
      const rows = await workspace.findMany({
        where: { status: 'active', ...(cursor === undefined ? {} : { workspace: { gt: cursor } }) },
        orderBy: { workspace: 'asc' },
        take: limit + 1,
      });
      const page = rows.slice(0, limit);
      return {
        workspaces: page.map(viewOf),
        nextCursor: rows.length > limit ? (page.at(-1)?.workspace ?? null) : null,
      };
    });
  }

  #insert({ caller, workspace: own }: Principal, id: string, name: string): Promise<WorkspaceRow> {
    const now = new Date(this.options.clock.now());
    const data = { workspace: id, name, status: 'pending', createdBy: caller, createdAt: now };
    return inWorkspace(this.options.prisma, own, async ({ workspace }) => {
      const known = await workspace.findUnique({ where: { workspace: id } });
      if (known === null) return workspace.create({ data });
      const isUnfinished =
        known.status === 'pending' && now.getTime() - known.createdAt.getTime() > UNFINISHED_MS;
      if (!isUnfinished) throw conflict('GATEWAY.WORKSPACE_EXISTS', `there is a workspace ${id} already`);
      // Its fact may be in the log, so the row keeps what the fact says.
      return known;
    });
  }
}
