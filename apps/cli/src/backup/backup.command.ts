import { copyFile, mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { backupDatabase, createPool } from '@antiphon/database';
import { checkArchiveFile, listArchives, readLogEnd } from '@antiphon/event-store';
import type { KnownArchive, LogEnd } from '@antiphon/event-store';
import { bug } from '@antiphon/kernel';
import { silentLogger } from '@antiphon/observability';
import type { Command } from 'commander';
import type pg from 'pg';
import { findDatabase } from '../audit/database-address.js';
import type { CommandContext, ContextOf } from '../command-context.js';
import { archiveFolder } from '../events/archive.command.js';

/** What a backup says of its log. */
export interface BackupFacts {
  readonly log: LogEnd;
  readonly archives: readonly {
    readonly archiveId: string;
    readonly file: string;
    readonly sha256: string;
  }[];
}

export const archivesIn = (folder: string): string => join(folder, 'archives');

const factsOf = async (client: pg.ClientBase): Promise<BackupFacts> => {
  const log = await readLogEnd(client);
  if (log === null) throw bug('DATABASE.MIGRATION_FAILED', 'this database has no log');
  const archives = await listArchives(client);
  return {
    log,
    archives: archives.map(({ archiveId, file, sha256 }) => ({
      archiveId,
      file,
      sha256: sha256.toString('hex'),
    })),
  };
};

/** The events that have left the log are part of it. */
const copyArchives = async (archives: BackupFacts['archives'], from: string, to: string): Promise<void> => {
  if (archives.length > 0) await mkdir(to, { recursive: true, mode: 0o700 });
  for (const { file, sha256 } of archives) {
    await checkArchiveFile(join(from, file), Buffer.from(sha256, 'hex') satisfies KnownArchive['sha256']);
    await copyFile(join(from, file), join(to, file));
  }
};

const backup = async (
  context: CommandContext,
  target: string,
  options: { archives?: string },
): Promise<void> => {
  const folder = resolve(context.cwd, target);
  const archives = archiveFolder(options.archives === undefined ? {} : { folder: options.archives }, context);
  const url = findDatabase(context.env, context.cwd);
  const pool = createPool({ url, applicationName: 'antiphon-backup', max: 1, logger: silentLogger });
  try {
    const { facts, tables } = await backupDatabase(pool, folder, async (client) => {
      const facts = await factsOf(client);
      // Before the manifest: a folder that has one is whole.
      await copyArchives(facts.archives, archives, archivesIn(folder));
      return facts;
    });
    const rows = tables.reduce((sum, table) => sum + table.rows, 0);
    const { position, at, epoch } = facts.log;
    const text = `${folder}: ${rows} rows of ${tables.length} tables, ${facts.archives.length} archive files\nthe log up to position ${position} (${at ?? 'empty'}), epoch ${epoch}; what comes after it would be lost`;
    context.output.result({ folder, log: facts.log, tables, archives: facts.archives }, text);
  } finally {
    await pool.end();
  }
};

/** `antiphon backup DIR` */
export const addBackup = (program: Command, context: ContextOf): void => {
  program
    .command('backup <folder>')
    .description(
      'write the whole database, as it is at one moment, to a folder; everything goes on meanwhile',
    )
    .option(
      '--archives <folder>',
      'where the files of archived events are (default: as `antiphon events archive`)',
    )
    .addHelpText(
      'after',
      [
        '\nThe folder holds everything that users wrote: keep it like the database. Credentials and workspaces of agents are not in it.',
        '\nExamples:',
        '  antiphon backup /mnt/backups/$(date +%F)',
        '  antiphon backup /tmp/before-the-upgrade --json | jq .log',
      ].join('\n'),
    )
    .action((folder: string, options: { archives?: string }, command: Command) =>
      backup(context(command), folder, options),
    );
};
