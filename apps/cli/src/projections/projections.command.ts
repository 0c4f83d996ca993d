import { createPool } from '@antiphon/database';
import { compareProjection, listProjections, rebuildProjection } from '@antiphon/event-store';
import type {
  ListedProjection,
  ProjectionComparison,
  ProjectionDefinition,
  RebuiltProjection,
  RowDifference,
} from '@antiphon/event-store';
import { invalid } from '@antiphon/kernel';
import { silentLogger } from '@antiphon/observability';
import type { Command } from 'commander';
import type pg from 'pg';
import { findDatabase } from '../audit/database-address.js';
import type { CommandContext, ContextOf } from '../command-context.js';
import { archiveFolder } from '../events/archive.command.js';
import { allProjections, projectionNamed } from './all-projections.js';

interface RebuildOptions {
  readonly all?: boolean;
  readonly compare?: boolean;
  readonly archives?: string;
}

/** What is folded, and where what has left the log is. */
interface Chosen {
  readonly definitions: readonly ProjectionDefinition[];
  readonly archives: string;
}

const onDatabase = async (
  { env, cwd }: CommandContext,
  work: (pool: pg.Pool) => Promise<void>,
): Promise<void> => {
  const url = findDatabase(env, cwd);
  const pool = createPool({
    url,
    applicationName: 'antiphon-projections',
    max: 2,
    idleInTransactionMs: 60_000,
    logger: silentLogger,
  });
  try {
    await work(pool);
  } finally {
    await pool.end();
  }
};

const renderListed = ({ name, service, position, lag, parked, stale }: ListedProjection): string =>
  [
    name.padEnd(16),
    service.padEnd(9),
    String(position).padStart(9),
    String(lag).padStart(7),
    String(parked).padStart(7),
    stale ? '  the log was restored: rebuild it' : '',
  ].join(' ');

const HEADING = `${'projection'.padEnd(16)} ${'service'.padEnd(9)}  position     lag  parked`;

const list = (context: CommandContext): Promise<void> =>
  onDatabase(context, async (pool) => {
    const projections = await listProjections(pool, allProjections);
    const text = [HEADING, ...projections.map(renderListed)].map((line) => line.trimEnd()).join('\n');
    context.output.result({ projections }, text);
  });

const renderDifference = ({ table, key, kind, columns }: RowDifference): string =>
  `  ${table} ${JSON.stringify(key)}: ${kind === 'other' ? columns.join(', ') : kind}`;

const renderComparison = ({ name, position, events, rows, differing, first }: ProjectionComparison): string =>
  [
    `${name}: ${differing} rows differ of ${rows} (${events} events, position ${position})`,
    ...first.map(renderDifference),
  ].join('\n');

const renderRebuilt = ({ name, position, events, changed, parked, heldMs }: RebuiltProjection): string =>
  `${name}: ${changed} rows changed (${events} events, position ${position}, held for ${heldMs} ms${parked > 0 ? `, ${parked} streams parked` : ''})`;

const compare = async (
  { output }: CommandContext,
  pool: pg.Pool,
  { definitions, archives }: Chosen,
): Promise<void> => {
  let differing = 0;
  for (const definition of definitions) {
    const compared = await compareProjection(pool, definition, { archives });
    differing += compared.differing;
    output.line(compared, `${renderComparison(compared)}\n`.trimEnd());
  }
  if (definitions.length > 1) output.piece(`${differing} rows differ\n`);
  if (differing > 0) process.exitCode = 1;
};

const rebuild = async (
  { output }: CommandContext,
  pool: pg.Pool,
  { definitions, archives }: Chosen,
): Promise<void> => {
  for (const definition of definitions) {
    const rebuilt = await rebuildProjection(pool, definition, { archives });
    output.line(rebuilt, renderRebuilt(rebuilt));
  }
};

const chosenOf = (
  name: string | undefined,
  { all = false }: RebuildOptions,
): readonly ProjectionDefinition[] => {
  if ((name === undefined) === !all)
    throw invalid('CLI.USAGE', 'name one projection, or say --all; `antiphon projections list` names them');
  return name === undefined ? allProjections : [projectionNamed(name)];
};

/** `antiphon projections list|rebuild` */
export const addProjections = (program: Command, context: ContextOf): void => {
  const projections = program
    .command('projections')
    .description('what is read from: rows that are folded from the log');
  projections
    .command('list')
    .description('every projection: how far it is, how many events behind, how many streams it has parked')
    .addHelpText('after', '\nExample:\n  antiphon projections list')
    .action((_: unknown, command: Command) => list(context(command)));
  projections
    .command('rebuild [name]')
    .description('fold a projection anew beside live traffic, and change the rows that differ at once')
    .option('--all', 'every projection, one after another')
    .option('--compare', 'change nothing: say which rows differ from the log; exits 1 if any does')
    .option(
      '--archives <folder>',
      'where the files of archived events are, which are folded along (default: as `antiphon events archive`)',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  antiphon projections rebuild agent-sessions\n  antiphon projections rebuild --all --compare',
    )
    .action((name: string | undefined, options: RebuildOptions, command: Command) => {
      const { archives } = options;
      const folder = archiveFolder(archives === undefined ? {} : { folder: archives }, context(command));
      const chosen = { definitions: chosenOf(name, options), archives: folder };
      const work = options.compare === true ? compare : rebuild;
      return onDatabase(context(command), (pool) => work(context(command), pool, chosen));
    });
};
