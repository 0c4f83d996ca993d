import type { Clock } from '@antiphon/kernel';
import { inWorkspace, type ApiKeyRow, type OperationalClient } from '@antiphon/prisma-client';
import { SESSION_KEY_NAMES } from '@antiphon/contracts/keys';
import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import type { IdentityLog } from './identity-log.js';
import { UNFINISHED_MS, type KeyRegistry } from './key-registry.js';

/** Age at which the row of an ended key is deleted; its facts stay in the log. */
const ENDED_MS = 90 * 24 * 3_600_000;
/** Age at which the row of an ended session or link is deleted: sign-ins add many of them. */
const SESSION_ENDED_MS = 24 * 3_600_000;
/** Rows of one workspace in one pass. */
const MAX_ROWS = 200;

export interface IdentitySweepOptions {
  readonly prisma: OperationalClient;
  readonly log: IdentityLog;
  readonly registry: KeyRegistry;
  readonly clock: Clock;
}

/**
 * Finishes changes of keys and workspaces that a crash left: a change whose fact is in the log is
 * completed, any other is taken back. A revocation is always completed. Deletes old rows.
 */
export class IdentitySweep {
  constructor(private readonly options: IdentitySweepOptions) {}

  /** Settles all workspaces once. Safe to run in several gateways at once. */
  async run(): Promise<void> {
    const { prisma } = this.options;
    await this.#finishWorkspaces();
    const workspaces = await inWorkspace(prisma, DEFAULT_WORKSPACE, (tables) =>
      tables.workspace.findMany({ select: { workspace: true } }),
    );
    for (const { workspace } of workspaces) {
      for (const row of await this.#unfinishedKeys(workspace)) await this.#finishKey(row);
      await this.#deleteEnded(workspace);
    }
  }

  #before(ageMs: number): Date {
    return new Date(this.options.clock.now() - ageMs);
  }

  async #finishWorkspaces(): Promise<void> {
    const { prisma, log } = this.options;
    const where = { status: 'pending', createdAt: { lt: this.#before(UNFINISHED_MS) } };
    const rows = await inWorkspace(prisma, DEFAULT_WORKSPACE, (tables) =>
      tables.workspace.findMany({ where, take: MAX_ROWS }),
    );
    for (const { workspace } of rows) {
      const isRecorded = await log.hasWorkspace(workspace);
      await inWorkspace(prisma, DEFAULT_WORKSPACE, async (tables) => {
        if (isRecorded) await tables.workspace.update({ where: { workspace }, data: { status: 'active' } });
        else await tables.workspace.deleteMany({ where: { workspace, status: 'pending' } });
      });
    }
  }

  #unfinishedKeys(workspace: string): Promise<ApiKeyRow[]> {
    return inWorkspace(this.options.prisma, workspace, ({ apiKey }) =>
      apiKey.findMany({
        where: {
          workspace,
          changedAt: { lt: this.#before(UNFINISHED_MS) },
          OR: [{ status: { in: ['pending', 'revoking'] } }, { nextHash: { not: null } }],
        },
        take: MAX_ROWS,
      }),
    );
  }

  async #finishKey(row: ApiKeyRow): Promise<void> {
    const { registry, log } = this.options;
    const { workspace, keyId, status, version } = row;
    if (status === 'revoking') return registry.recordRevocation(row);
    if (status === 'pending') {
      if (await log.hasKey(workspace, keyId)) return registry.recordCreation(row);
      return this.#change(row, ({ apiKey }) =>
        apiKey.deleteMany({ where: { workspace, keyId, status: 'pending', changedAt: row.changedAt } }),
      );
    }
    if (await log.hasKeyFact(workspace, keyId, 'KeyRotated', version + 1))
      return registry.recordRotation(row);
    return this.#change(row, ({ apiKey }) =>
      apiKey.updateMany({
        where: { workspace, keyId, version, changedAt: row.changedAt },
        data: { nextHash: null, nextOverlapS: null },
      }),
    );
  }

  async #change({ workspace }: ApiKeyRow, work: Parameters<typeof inWorkspace>[2]): Promise<void> {
    await inWorkspace(this.options.prisma, workspace, work);
  }

  async #deleteEnded(workspace: string): Promise<void> {
    const endedBefore = (before: Date) => [
      { status: 'revoked', changedAt: { lt: before } },
      { expiresAt: { lt: before } },
    ];
    const isSession = Object.values(SESSION_KEY_NAMES).map((prefix) => ({ name: { startsWith: prefix } }));
    await inWorkspace(this.options.prisma, workspace, async ({ apiKey }) => {
      await apiKey.deleteMany({ where: { workspace, OR: endedBefore(this.#before(ENDED_MS)) } });
      const ended = { OR: endedBefore(this.#before(SESSION_ENDED_MS)) };
      await apiKey.deleteMany({ where: { workspace, AND: [{ OR: isSession }, ended] } });
    });
  }
}
