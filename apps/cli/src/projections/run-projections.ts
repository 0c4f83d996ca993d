import { agentProjections } from '@antiphon/agent-features/projections';
import { compareProjection, listProjections, rebuildProjection } from '@antiphon/event-store';
import type {
  ListedProjection,
  ProjectionComparison,
  ProjectionDefinition,
  RebuiltProjection,
  RowDifference,
} from '@antiphon/event-store';
import { invalid } from '@antiphon/kernel';
import { memoryProjections } from '@antiphon/memory-features/projections';
import { meteringProjections } from '@antiphon/metering-features/projections';
import type pg from 'pg';
import { archiveFolder, withDatabase } from '../connection/stack-locations.js';
import type { CommandContext } from '../output.js';

/** Projections of every service. */
export const allProjections: readonly ProjectionDefinition[] = [
  ...agentProjections,
  ...memoryProjections,
  ...meteringProjections,
];

/** Finds a projection by its name. Throws `CLI.USAGE` for an unknown one. */
export const findProjection = (name: string): ProjectionDefinition => {
  const found = allProjections.find((definition) => definition.name === name);
  if (found) return found;
  const known = allProjections.map((definition) => definition.name).join(', ');
  throw invalid('CLI.USAGE', `there is no projection ${name}; those there are: ${known}`);
};

const onDatabase = (context: CommandContext, work: (pool: pg.Pool) => Promise<void>): Promise<void> =>
  withDatabase(
    context,
    { applicationName: 'antiphon-projections', max: 2, idleInTransactionMs: 60_000 },
    work,
  );

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

/** Lists every projection with its position, lag and number of parked streams. */
export const list = (context: CommandContext): Promise<void> =>
  onDatabase(context, async (pool) => {
    const projections = await listProjections(pool, allProjections);
    const text = [HEADING, ...projections.map(renderListed)].map((line) => line.trimEnd()).join('\n');
    context.output.result({ projections }, text);
  });

export interface RebuildOptions {
  readonly all?: boolean;
  readonly compare?: boolean;
  readonly archives?: string;
}

interface Rebuild {
  readonly definitions: readonly ProjectionDefinition[];
  /** Folder of the archive files, whose events are folded too. */
  readonly archives: string;
}

const renderDifference = ({ table, key, kind, columns }: RowDifference): string =>
  `  ${table} ${JSON.stringify(key)}: ${kind === 'other' ? columns.join(', ') : kind}`;

const renderComparison = ({ name, position, events, rows, differing, first }: ProjectionComparison): string =>
  [
    `${name}: ${differing} rows differ of ${rows} (${events} events, position ${position})`,
    ...first.map(renderDifference),
  ].join('\n');

const renderRebuilt = ({ name, position, events, changed, parked, heldMs }: RebuiltProjection): string =>
  `${name}: ${changed} rows changed (${events} events, position ${position}, locked for ${heldMs} ms${parked > 0 ? `, ${parked} streams parked` : ''})`;

const compareAll = async (
  { output }: CommandContext,
  pool: pg.Pool,
  { definitions, archives }: Rebuild,
): Promise<void> => {
  let differing = 0;
  for (const definition of definitions) {
    const compared = await compareProjection(pool, definition, { archives });
    differing += compared.differing;
    output.line(compared, renderComparison(compared));
  }
  if (definitions.length > 1) output.piece(`${differing} rows differ\n`);
  if (differing > 0) process.exitCode = 1;
};

const rebuildAll = async (
  { output }: CommandContext,
  pool: pg.Pool,
  { definitions, archives }: Rebuild,
): Promise<void> => {
  for (const definition of definitions) {
    const rebuilt = await rebuildProjection(pool, definition, { archives });
    output.line(rebuilt, renderRebuilt(rebuilt));
  }
};

const selectDefinitions = (name: string | undefined, isAll: boolean): readonly ProjectionDefinition[] => {
  if ((name === undefined) === !isAll)
    throw invalid('CLI.USAGE', 'name one projection, or pass --all; `antiphon projections list` lists them');
  return name === undefined ? allProjections : [findProjection(name)];
};

/** Rebuilds one projection or all from the log; with `--compare` reports the rows that differ. */
export const rebuild = (
  context: CommandContext,
  name: string | undefined,
  options: RebuildOptions,
): Promise<void> => {
  const definitions = selectDefinitions(name, options.all === true);
  const archives = archiveFolder(options.archives, context);
  const run = options.compare === true ? compareAll : rebuildAll;
  return onDatabase(context, (pool) => run(context, pool, { definitions, archives }));
};
