import { isAbsolute, join, resolve } from 'node:path';
import { REST_RULES } from '@antiphon/contracts/events';
import { createPool } from '@antiphon/database';
import { archiveEvents, listArchives, restoreArchive } from '@antiphon/event-store';
import type { Archived, ArchiveOptions } from '@antiphon/event-store';
import { invalid } from '@antiphon/kernel';
import { silentLogger } from '@antiphon/observability';
import type { Command } from 'commander';
import type pg from 'pg';
import { findDatabase } from '../audit/database-address.js';
import type { CommandContext, ContextOf } from '../command-context.js';
import { homeOf } from '../connection/gateway-address.js';

interface FolderOption {
  readonly folder?: string;
}

/** Where archive files are: `--folder`, `ANTIPHON_ARCHIVE_FOLDER`, else `archives` in the home. */
export const archiveFolder = (
  { folder }: FolderOption,
  { env, cwd }: Pick<CommandContext, 'env' | 'cwd'>,
): string => {
  const given = folder ?? (env['ANTIPHON_ARCHIVE_FOLDER'] || undefined);
  if (given === undefined) return join(homeOf(env, cwd), 'archives');
  return isAbsolute(given) ? given : resolve(cwd, given);
};

const onDatabase = async (
  { env, cwd }: CommandContext,
  work: (pool: pg.Pool) => Promise<void>,
): Promise<void> => {
  const url = findDatabase(env, cwd);
  const pool = createPool({ url, applicationName: 'antiphon-archive', max: 2, logger: silentLogger });
  try {
    await work(pool);
  } finally {
    await pool.end();
  }
};

const POSITION = /^\d{1,15}$/;
const DATE = /^\d{4}-\d{2}-\d{2}(T[\d:.]+(Z|[+-]\d{2}:\d{2}))?$/;

const beforeOf = (text: string): ArchiveOptions['before'] => {
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

interface ArchiveCommandOptions extends FolderOption {
  readonly before: string;
  readonly workspace?: string;
}

const archive = (context: CommandContext, options: ArchiveCommandOptions): Promise<void> =>
  onDatabase(context, async (pool) => {
    const before = beforeOf(options.before);
    const folder = archiveFolder(options, context);
    const what = { rules: REST_RULES, before, workspace: options.workspace };
    const archives: Archived[] = [];
    for (;;) {
      const made = await archiveEvents({ pool, folder, ...what });
      if (made === null) break;
      archives.push(made);
      if (!context.output.json) process.stderr.write(`${renderArchived(made)}\n`);
    }
    const events = archives.reduce((sum, made) => sum + made.events, 0);
    const text =
      events === 0 ? 'nothing to archive' : `${events} events left the log to ${folder}; keep these files`;
    context.output.result({ folder, archives }, text);
  });

const list = (context: CommandContext): Promise<void> =>
  onDatabase(context, async (pool) => {
    const archives = (await listArchives(pool)).map((one) => ({
      ...one,
      sha256: one.sha256.toString('hex'),
    }));
    const lines = archives.map((one) => `${one.archiveId}  ${renderArchived(one)}`);
    context.output.result({ archives }, lines.length === 0 ? 'nothing has left the log' : lines.join('\n'));
  });

const restore = (
  context: CommandContext,
  archiveId: string | undefined,
  options: FolderOption & { all?: boolean },
): Promise<void> =>
  onDatabase(context, async (pool) => {
    if ((archiveId === undefined) === (options.all !== true))
      throw invalid('CLI.USAGE', 'name one archive (antiphon events archives lists them), or say --all');
    const folder = archiveFolder(options, context);
    const ids =
      archiveId === undefined ? (await listArchives(pool)).map((one) => one.archiveId) : [archiveId];
    const restored: Archived[] = [];
    for (const id of ids) restored.push(await restoreArchive(pool, folder, id));
    const text = restored.map((one) => `back in the log: ${renderArchived(one)}`).join('\n');
    context.output.result(
      { folder, restored: restored.map(({ archiveId: id, events }) => ({ archiveId: id, events })) },
      text || 'nothing has left the log',
    );
  });

const withFolder = (command: Command): Command =>
  command.option(
    '--folder <path>',
    'where the files are (default: ANTIPHON_ARCHIVE_FOLDER, else `archives` in the home)',
  );

const ARCHIVE_HELP = [
  '\nWhat is at work stays, and so do definitions and what session keys mean. Keep the files: the audit reads them.',
  '\nExamples:',
  '  antiphon events archive --before 2026-01-01',
  '  antiphon events archive --before 1500000 --folder /mnt/archive',
  '  antiphon events archive --before 2026-01-01 --workspace acme',
].join('\n');

/** `antiphon events archive|archives|restore` */
export const addArchive = (events: Command, context: ContextOf): void => {
  withFolder(
    events.command('archive').description('let old event streams that are at rest leave the log to files'),
  )
    .requiredOption('--before <date|position>', 'only streams whose last event is older')
    .option('--workspace <name>', 'only streams of this workspace (default: of all)')
    .addHelpText('after', ARCHIVE_HELP)
    .action((options: ArchiveCommandOptions, command: Command) => archive(context(command), options));
  events
    .command('archives')
    .description('the files that events have left to')
    .addHelpText('after', '\nExample:\n  antiphon events archives --json | jq .archives[].file')
    .action((_options: object, command: Command) => list(context(command)));
  withFolder(
    events.command('restore [archive]').description('put archived events back into the log, as they were'),
  )
    .option('--all', 'every archive')
    .addHelpText(
      'after',
      '\nExamples:\n  antiphon events restore 7d0f6c1e-5a43-4f0e-9a3f-0d1c2b3a4958\n  antiphon events restore --all   # before a projection is rebuilt',
    )
    .action((archiveId: string | undefined, options: FolderOption & { all?: boolean }, command: Command) =>
      restore(context(command), archiveId, options),
    );
};
