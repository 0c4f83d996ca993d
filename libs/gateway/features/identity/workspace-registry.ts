import type { Principal } from '@antiphon/contracts/identity';
import type { IssuedWorkspace, WorkspaceView } from '@antiphon/contracts/keys';
import { conflict, type Clock } from '@antiphon/kernel';
import { inWorkspace, type OperationalClient, type WorkspaceRow } from '@antiphon/prisma-client';
import { keyIdForRequest } from '../access/api-key-text.js';
import { assertAdministersInstallation } from '../access/key-rights.js';
import type { IdentityLog } from './identity-log.js';
import { createKeyLookup } from './key-lookup.js';
import { UNFINISHED_MS, type KeyRegistry } from './key-registry.js';

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

const reused = () =>
  conflict('LOG.IDEMPOTENCY_CONFLICT', 'this idempotency key was used for another workspace');

/** Creates and lists workspaces. Only callers of the workspace `default` see others. */
export class WorkspaceRegistry {
  constructor(private readonly options: WorkspaceRegistryOptions) {}

  /**
   * Creates a workspace and its first admin key. With an idempotency key, a repeat returns the same
   * workspace and key, without the key's secret. Throws `GATEWAY.FORBIDDEN`,
   * `GATEWAY.WORKSPACE_EXISTS`, `LOG.IDEMPOTENCY_CONFLICT`.
   */
  async create(
    caller: Principal,
    id: string,
    name: string,
    idempotencyKey?: string,
  ): Promise<IssuedWorkspace> {
    assertAdministersInstallation(caller, 'workspaces:manage');
    // A header has no line break, so that no request for a key has the same text.
    const keyRequest = idempotencyKey === undefined ? undefined : `workspace\n${idempotencyKey}`;
    const row = await this.#insert(caller, id, name, keyRequest);
    const view = viewOf(row);
    if (row.status === 'pending') {
      const { name: stored, createdBy, createdAt } = view;
      await this.options.log.appendWorkspace(id, { workspaceId: id, name: stored, createdBy, createdAt });
      await inWorkspace(this.options.prisma, id, ({ workspace }) =>
        workspace.update({ where: { workspace: id }, data: { status: 'active' } }),
      );
    }
    const first = { name: 'first admin', role: 'admin', workspace: id } as const;
    return { ...view, key: await this.options.keys.create(caller, first, keyRequest) };
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

  async #insert(
    caller: Principal,
    id: string,
    name: string,
    keyRequest: string | undefined,
  ): Promise<WorkspaceRow> {
    const now = new Date(this.options.clock.now());
    const isRepeat = keyRequest !== undefined && (await this.#isRepeat(caller, id, keyRequest));
    const data = { workspace: id, name, status: 'pending', createdBy: caller.caller, createdAt: now };
    return inWorkspace(this.options.prisma, caller.workspace, async ({ workspace }) => {
      const known = await workspace.findUnique({ where: { workspace: id } });
      if (known === null) return workspace.create({ data });
      if (isRepeat && known.name === name) return known;
      if (isRepeat) throw reused();
      const isUnfinished =
        known.status === 'pending' && now.getTime() - known.createdAt.getTime() > UNFINISHED_MS;
      if (!isUnfinished) throw conflict('GATEWAY.WORKSPACE_EXISTS', `there is a workspace ${id} already`);
      // Its fact may be in the log, so the row keeps what the fact says.
      return known;
    });
  }

  /**
   * Returns true if an earlier request of the idempotency key created the workspace, or created it
   * without its key before a crash. Throws if the request created another workspace.
   */
  async #isRepeat({ workspace, caller }: Principal, id: string, keyRequest: string): Promise<boolean> {
    const { prisma } = this.options;
    const [key] = await createKeyLookup(prisma)([keyIdForRequest(workspace, caller, keyRequest)]);
    if (key !== undefined && key.workspace !== id) throw reused();
    if (key !== undefined) return true;
    return inWorkspace(prisma, id, async (tables) => {
      const where = { workspace: id, status: 'active', createdBy: caller };
      if ((await tables.workspace.count({ where })) === 0) return false;
      return (await tables.apiKey.count({ where: { workspace: id } })) === 0;
    });
  }
}
