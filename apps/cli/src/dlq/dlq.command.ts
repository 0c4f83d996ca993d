import { createPool } from '@antiphon/database';
import { listParked } from '@antiphon/event-store';
import type { ParkedStream } from '@antiphon/event-store';
import type { StoredDeadLetter, NatsLink } from '@antiphon/messaging';
import { silentLogger } from '@antiphon/observability';
import type { Command } from 'commander';
import type pg from 'pg';
import { connectOperator, findNats } from '../audit/audit-engines.js';
import { findDatabase } from '../audit/database-address.js';
import type { CommandContext, ContextOf } from '../command-context.js';
import { projectionNamed } from '../projections/all-projections.js';
import { replayLetters, replayStreams } from './replay.js';

export interface DlqFilter {
  readonly projection?: string;
  readonly stream?: string;
  readonly consumer?: string;
}

interface Stores {
  readonly pool: pg.Pool;
  /** Null where nobody knows NATS: there are the parked streams alone. */
  readonly link: NatsLink | null;
}

const withStores = async (
  { env, cwd, output }: CommandContext,
  { projection, stream }: DlqFilter,
  work: (stores: Stores) => Promise<void>,
): Promise<void> => {
  const url = findDatabase(env, cwd);
  // Of a projection or an event stream there are parked streams only.
  const nats = projection === undefined && stream === undefined ? findNats(env, cwd) : null;
  if (nats === null && projection === undefined && stream === undefined && !output.json)
    process.stderr.write('messages are not looked at: no NATS is known (ANTIPHON_NATS_URL)\n');
  const pool = createPool({ url, applicationName: 'antiphon-dlq', max: 2, logger: silentLogger });
  const link = nats && (await connectOperator(nats, 'antiphon-dlq'));
  try {
    await work({ pool, link });
  } finally {
    await Promise.all([pool.end(), link?.drain()]);
  }
};

const parkedOf = (pool: pg.Pool, { projection, stream, consumer }: DlqFilter) =>
  consumer === undefined
    ? listParked(pool, {
        ...(projection === undefined ? {} : { projection }),
        ...(stream === undefined ? {} : { streamId: stream }),
      })
    : Promise.resolve([]);

const lettersOf = async (
  link: NatsLink | null,
  { consumer }: DlqFilter,
): Promise<readonly StoredDeadLetter[]> => {
  if (link === null) return [];
  const { listDeadLetters } = await import('@antiphon/messaging');
  const letters = await listDeadLetters(link);
  return letters.filter((letter) => consumer === undefined || letter.consumer === consumer);
};

const renderParked = (parked: ParkedStream): string => {
  const { projection, workspace, streamId, type, position, tries, retryAt, reason } = parked;
  const state = retryAt === null ? `parked after ${tries} tries` : `try ${tries + 1} at ${retryAt}`;
  return `projection ${projection}: ${workspace} ${streamId} at ${type ?? 'an event'} (position ${position}), ${state}\n  ${reason}`;
};

const renderLetter = ({
  consumer,
  subject,
  code,
  reason,
  deliveries,
  at,
  sequence,
}: StoredDeadLetter): string =>
  `message ${sequence} of ${consumer}: ${subject}, ${deliveries} tries, ${at}\n  ${code}: ${reason}`;

const toJson = ({ headers: _, data, ...letter }: StoredDeadLetter) => ({
  ...letter,
  data: Buffer.from(data).toString(),
});

const list = (context: CommandContext, filter: DlqFilter): Promise<void> =>
  withStores(context, filter, async ({ pool, link }) => {
    const [streams, letters] = await Promise.all([parkedOf(pool, filter), lettersOf(link, filter)]);
    const lines = [...streams.map(renderParked), ...letters.map(renderLetter)];
    const text = lines.length > 0 ? lines.join('\n') : 'nothing is parked';
    context.output.result({ streams, messages: letters.map(toJson) }, text);
  });

const replay = (context: CommandContext, filter: DlqFilter): Promise<void> =>
  withStores(context, filter, async ({ pool, link }) => {
    const streams = await replayStreams(pool, await parkedOf(pool, filter), filter);
    const messages = await replayLetters(link, await lettersOf(link, filter));
    const replayed = streams.replayed + messages.replayed;
    const failed = [...streams.failed, ...messages.failed];
    const text = [
      `${streams.replayed} streams and ${messages.replayed} messages replayed, ${failed.length} stay parked`,
      ...failed.map(({ what, reason }) => `  ${what}: ${reason}`),
    ].join('\n');
    context.output.result({ replayed, streams, messages }, text);
    if (failed.length > 0) process.exitCode = 1;
  });

const addFilters = (command: Command): Command =>
  command
    .option('--projection <name>', 'only what this projection has parked')
    .option('--stream <id>', 'only this event stream')
    .option('--consumer <name>', 'only messages that this consumer gave up');

const checked = (filter: DlqFilter): DlqFilter => {
  if (filter.projection !== undefined) projectionNamed(filter.projection);
  return filter;
};

/** `antiphon dlq list|replay` */
export const addDlq = (program: Command, context: ContextOf): void => {
  const dlq = program
    .command('dlq')
    .description('what could not be handled, and waits: events of projections, messages of consumers');
  addFilters(dlq.command('list').description('each with its reason and how often it was tried'))
    .addHelpText(
      'after',
      '\nExamples:\n  antiphon dlq list\n  antiphon dlq list --projection memory-facts --json',
    )
    .action((filter: DlqFilter, command: Command) => list(context(command), checked(filter)));
  addFilters(dlq.command('replay').description('handle it again, after the fix; exits 1 if anything stays'))
    .addHelpText(
      'after',
      '\nExamples:\n  antiphon dlq replay\n  antiphon dlq replay --projection agent-sessions --stream session-0199…',
    )
    .action((filter: DlqFilter, command: Command) => replay(context(command), checked(filter)));
};
