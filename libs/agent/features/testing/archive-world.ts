import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { REST_RULES } from '@antiphon/contracts/events';
import { ALL_WORKSPACES, createPool } from '@antiphon/database';
import { archiveEvents, listArchives, restoreArchive } from '@antiphon/event-store';
import type { TestDatabase } from '@antiphon/testing';
import { until } from './agent-world.js';

type Rules = Parameters<typeof archiveEvents>[0]['rules'];

/** Archives of one database, in a folder of their own. */
export interface ArchiveWorld {
  readonly admin: pg.Pool;
  /** Moves all events of streams at rest out of the log, once every projection has them. */
  archive(rules: Rules): Promise<void>;
  /** Puts all archived events back. */
  restoreAll(): Promise<void>;
  close(): Promise<void>;
}

export const rulesOf = (category: string): Rules => REST_RULES.filter((rule) => rule.category === category);

/** Creates archives for a log whose roots cover all its events. */
export const createArchiveWorld = async (database: TestDatabase): Promise<ArchiveWorld> => {
  const open = (url: string) =>
    createPool({ url, applicationName: 'spec', max: 2, workspace: ALL_WORKSPACES });
  const admin = open(database.url);
  const [pool, archiver] = [open(database.urlFor('agent')), open(database.urlFor('archiver'))];
  const folder = await mkdtemp(join(tmpdir(), 'antiphon-archives-'));
  await admin.query(`insert into log_roots values (1, 'root', 1000000, '\\x00', '{}', now())`);
  const projectionsSettle = () =>
    until(async () => {
      const { rowCount } = await admin.query(
        `select from projection_checkpoints having min(position) < (select max(position) from events)`,
      );
      return rowCount === 0;
    });
  return {
    admin,
    archive: async (rules) => {
      await projectionsSettle();
      await archiveEvents({ pool, archiver, folder, rules, before: { position: 900_000 } });
    },
    restoreAll: async () => {
      for (const { archiveId } of await listArchives(admin)) await restoreArchive(admin, folder, archiveId);
    },
    close: async () => {
      await Promise.all([admin, pool, archiver].map((one) => one.end()));
      await rm(folder, { recursive: true });
    },
  };
};
