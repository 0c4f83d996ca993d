import { randomUUID } from 'node:crypto';
import { copyFile, mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { BackupReport } from '@antiphon/contracts/keys';
import { backupDatabase } from '@antiphon/database';
import { checkArchiveFile, listArchives, readLogEnd, signContent } from '@antiphon/event-store';
import type { LogEnd } from '@antiphon/event-store';
import { bug } from '@antiphon/kernel';
import type pg from 'pg';
import { findReportSigner, findSigningKeys } from '../connection/signing-keys.js';
import { archiveFolder, withDatabase } from '../connection/stack-locations.js';
import type { CommandContext } from '../output.js';

/** Facts about the log in a backup's manifest. */
export interface BackupFacts {
  readonly log: LogEnd;
  readonly archives: readonly {
    readonly archiveId: string;
    readonly file: string;
    readonly sha256: string;
  }[];
}

export const archivesIn = (folder: string): string => join(folder, 'archives');

const readFacts = async (client: pg.ClientBase): Promise<BackupFacts> => {
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

/** Copies the archive files after verifying their hashes: archived events are part of the log. */
const copyArchives = async (archives: BackupFacts['archives'], from: string, to: string): Promise<void> => {
  if (archives.length > 0) await mkdir(to, { recursive: true, mode: 0o700 });
  for (const { file, sha256 } of archives) {
    await checkArchiveFile(join(from, file), Buffer.from(sha256, 'hex'));
    await copyFile(join(from, file), join(to, file));
  }
};

export interface BackupOptions {
  readonly archives?: string;
  readonly record?: boolean;
}

interface Written {
  readonly report: BackupReport;
  readonly result: object;
  readonly text: string;
}

const writeBackup = (context: CommandContext, target: string, options: BackupOptions): Promise<Written> =>
  withDatabase(context, { applicationName: 'antiphon-backup', max: 1 }, async (pool) => {
    const folder = resolve(context.cwd, target);
    const source = archiveFolder(options.archives, context);
    const keys = findSigningKeys(undefined, context);
    const readAll = async (client: pg.ClientBase): Promise<BackupFacts> => {
      const read = await readFacts(client);
      // Before the manifest is written: a folder with a manifest is complete.
      await copyArchives(read.archives, source, archivesIn(folder));
      return read;
    };
    const { facts, tables, keyId } = await backupDatabase(pool, folder, readAll, (manifest) =>
      keys === null ? manifest : signContent(manifest, keys.privateKey),
    );
    const rows = tables.reduce((sum, table) => sum + table.rows, 0);
    const { position, at, epoch } = facts.log;
    const text = [
      `${folder}: ${rows} rows of ${tables.length} tables, ${facts.archives.length} archive files`,
      `the log up to position ${position} (${at ?? 'empty'}), epoch ${epoch}; a restore loses later events`,
      keyId === undefined
        ? 'UNSIGNED: no key was found; a changed backup is not detected'
        : `signed with the key ${keyId}`,
    ].join('\n');
    return {
      report: {
        ...{ backupId: randomUUID(), folder, position, epoch, tables: tables.length, rows },
        ...{ archives: facts.archives.length, keyId: keyId ?? null },
      },
      result: { folder, log: facts.log, tables, archives: facts.archives, keyId: keyId ?? null },
      text,
    };
  });

/**
 * Writes a consistent copy of the database and its archive files to a folder, and prints its facts.
 * With `record`, the gateway then records them.
 */
export const runBackup = async (
  context: CommandContext,
  target: string,
  options: BackupOptions,
): Promise<void> => {
  // Fails now rather than after the backup.
  const sign = options.record ? findReportSigner('backup', undefined, context) : null;
  if (sign) await context.gateway();
  const { report, result, text } = await writeBackup(context, target, options);
  context.output.result(result, text);
  if (sign) await (await context.http()).recordBackup({ body: sign(report) });
};
