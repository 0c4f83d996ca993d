import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { REST_RULES } from '@antiphon/contracts/events';
import {
  archiveEvents,
  listArchiveRequests,
  listArchives,
  rebuildProjection,
  restoreArchive,
  settleArchiveRequest,
} from '@antiphon/event-store';
import type { Archived, ArchiveOptions, KnownArchive } from '@antiphon/event-store';
import { invalid } from '@antiphon/kernel';
import type pg from 'pg';
import { archiveFolder, withDatabase } from '../connection/stack-locations.js';
import type { CommandContext } from '../output.js';

interface FolderOption {
  readonly folder?: string;
}

export interface ArchiveCommandOptions extends FolderOption {
  readonly before: string;
  readonly workspace?: string;
}

export interface RestoreCommandOptions extends FolderOption {
  readonly all?: boolean;
}

const OPTIONS = { applicationName: 'antiphon-archive', max: 2 };
const onDatabase = (context: CommandContext, work: (pool: pg.Pool) => Promise<void>): Promise<void> =>
  withDatabase(context, OPTIONS, work);
/** Only the archiver's role takes events out of the log. */
const asArchiver = <T>(context: CommandContext, work: (pool: pg.Pool) => Promise<T>): Promise<T> =>
  withDatabase(context, { ...OPTIONS, role: 'antiphon_archiver' }, work);

/** Settles requests of a command that was killed, whose files are in this folder. */
const settleOwn = async (archiver: pg.Pool, folder: string): Promise<void> => {
  for (const request of await listArchiveRequests(archiver))
    if (request.refusal === null && existsSync(join(folder, basename(request.file))))
      await settleArchiveRequest(archiver, folder, request);
};

const POSITION = /^\d{1,15}$/;
const DATE = /^\d{4}-\d{2}-\d{2}(T[\d:.]+(Z|[+-]\d{2}:\d{2}))?$/;

const parseBefore = (text: string): ArchiveOptions['before'] => {
  if (POSITION.test(text)) return { position: Number(text) };
  const time = DATE.test(text) ? new Date(text) : null;
  if (time === null || Number.isNaN(time.getTime()))
    throw invalid(
      'CLI.USAGE',
      `--before takes a date (2026-01-31, or ISO 8601 with its zone) or a position of the log, not "${text}"`,
    );
  return { time: time.toISOString() };
};

const renderArchived = ({ file, streams, events }: Archived): string =>
  `${file}: ${events} events of ${streams} event streams`;

/** Moves old, closed event streams from the log to archive files. */
export const archive = (context: CommandContext, options: ArchiveCommandOptions): Promise<void> =>
  onDatabase(context, async (pool) => {
    const before = parseBefore(options.before);
    const folder = archiveFolder(options.folder, context);
    const selection = { rules: REST_RULES, before, workspace: options.workspace };
    const archives: Archived[] = [];
    await asArchiver(context, async (archiver) => {
      await settleOwn(archiver, folder);
      for (;;) {
        const archived = await archiveEvents({ pool, archiver, folder, ...selection });
        if (archived === null) break;
        archives.push(archived);
        if (!context.output.json) process.stderr.write(`${renderArchived(archived)}\n`);
      }
    });
    const events = archives.reduce((sum, archived) => sum + archived.events, 0);
    const text =
      events === 0
        ? 'nothing to archive: no closed stream is old enough, or no signed root covers one yet'
        : `${events} events moved to ${folder}; keep these files`;
    context.output.result({ folder, archives }, text);
  });

/** Lists the archive files. */
export const list = (context: CommandContext): Promise<void> =>
  onDatabase(context, async (pool) => {
    const archives = (await listArchives(pool)).map((one) => ({
      ...one,
      sha256: one.sha256.toString('hex'),
    }));
    const lines = archives.map((one) => `${one.archiveId}  ${renderArchived(one)}`);
    context.output.result({ archives }, lines.length === 0 ? 'no archives' : lines.join('\n'));
  });

/** Folds the log again for the rows that were deleted while their events were archived. */
const rebuildRows = async (pool: pg.Pool, archives: string): Promise<void> => {
  const [{ agentSessions }, { budgetLedger }] = await Promise.all([
    import('@antiphon/agent-features/projections'),
    import('@antiphon/metering-features/projections'),
  ]);
  for (const definition of [agentSessions, budgetLedger])
    await rebuildProjection(pool, definition, { archives });
};

/** Puts the events of one archive, or of all, back into the log. */
export const restore = (
  context: CommandContext,
  archiveId: string | undefined,
  options: RestoreCommandOptions,
): Promise<void> =>
  onDatabase(context, async (pool) => {
    if ((archiveId === undefined) === (options.all !== true))
      throw invalid('CLI.USAGE', 'name one archive (`antiphon events archives` lists them), or pass --all');
    const folder = archiveFolder(options.folder, context);
    const ids =
      archiveId === undefined ? (await listArchives(pool)).map((one) => one.archiveId) : [archiveId];
    const restored: KnownArchive[] = [];
    for (const id of ids) restored.push(await restoreArchive(pool, folder, id));
    if (restored.some(({ hasDeletedRows }) => hasDeletedRows)) await rebuildRows(pool, folder);
    const text = restored.map((one) => `restored: ${renderArchived(one)}`).join('\n');
    context.output.result(
      { folder, restored: restored.map(({ archiveId: id, events }) => ({ archiveId: id, events })) },
      text || 'no archives',
    );
  });
