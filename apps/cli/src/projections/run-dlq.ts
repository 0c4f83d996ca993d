import { listParked, replayParked } from '@antiphon/event-store';
import type { ParkedStream } from '@antiphon/event-store';
import type { StoredDeadLetter, NatsLink } from '@antiphon/messaging';
import type pg from 'pg';
import { connectOperator, findNats, withDatabase } from '../connection/stack-locations.js';
import type { CommandContext } from '../output.js';
import { allProjections, findProjection } from './run-projections.js';

export interface DlqFilter {
  readonly projection?: string;
  readonly stream?: string;
  readonly consumer?: string;
}

interface Stores {
  readonly pool: pg.Pool;
  /** Null without an address of NATS: then only parked streams are listed. */
  readonly link: NatsLink | null;
}

const withStores = async (
  context: CommandContext,
  { projection, stream }: DlqFilter,
  work: (stores: Stores) => Promise<void>,
): Promise<void> => {
  if (projection !== undefined) findProjection(projection);
  const hasMessages = projection === undefined && stream === undefined;
  const nats = hasMessages ? findNats(context) : null;
  if (nats === null && hasMessages && !context.output.json)
    process.stderr.write('dead letters are not listed: set ANTIPHON_NATS_URL to the address of NATS\n');
  await withDatabase(context, { applicationName: 'antiphon-dlq', max: 2 }, async (pool) => {
    const link = nats && (await connectOperator(nats, 'antiphon-dlq'));
    try {
      await work({ pool, link });
    } finally {
      await link?.drain();
    }
  });
};

const readParked = async (
  pool: pg.Pool,
  { projection, stream, consumer }: DlqFilter,
): Promise<readonly ParkedStream[]> =>
  consumer === undefined ? listParked(pool, { projection, streamId: stream }) : [];

const readLetters = async (
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
  const state = retryAt === null ? `parked after ${tries} attempts` : `attempt ${tries + 1} at ${retryAt}`;
  return `projection ${projection}: ${workspace} ${streamId} at ${type ?? 'an event'} (position ${position}), ${state}\n  ${reason}`;
};

const renderLetter = (letter: StoredDeadLetter): string => {
  const { consumer, subject, code, reason, deliveries, at, sequence } = letter;
  return `message ${sequence} of ${consumer}: ${subject}, ${deliveries} attempts, ${at}\n  ${code}: ${reason}`;
};

const toJson = ({ headers: _, data, ...letter }: StoredDeadLetter) => ({
  ...letter,
  data: Buffer.from(data).toString(),
});

/** Lists parked streams and dead letters. */
export const list = (context: CommandContext, filter: DlqFilter): Promise<void> =>
  withStores(context, filter, async ({ pool, link }) => {
    const [streams, letters] = await Promise.all([readParked(pool, filter), readLetters(link, filter)]);
    const lines = [...streams.map(renderParked), ...letters.map(renderLetter)];
    const text = lines.length > 0 ? lines.join('\n') : 'nothing is parked';
    context.output.result({ streams, messages: letters.map(toJson) }, text);
  });

interface ReplayOutcome {
  readonly replayed: number;
  readonly failed: readonly { readonly what: string; readonly reason: string }[];
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/**
 * Replays parked streams in this process, with this version's handlers; each projection's lock is
 * held.
 */
const replayStreams = async (
  pool: pg.Pool,
  parked: readonly ParkedStream[],
  { stream }: DlqFilter,
): Promise<ReplayOutcome> => {
  const failed: { what: string; reason: string }[] = [];
  let replayed = 0;
  for (const name of new Set(parked.map(({ projection }) => projection))) {
    const definition = allProjections.find((known) => known.name === name);
    if (!definition) {
      failed.push({ what: `projection ${name}`, reason: 'this version has no such projection' });
      continue;
    }
    const result = await replayParked({ ...definition, pool }, { streamId: stream });
    replayed += result.replayed;
    for (const { streamId, error } of result.stillParked)
      failed.push({ what: `projection ${name}: ${streamId}`, reason: reasonOf(error) });
  }
  return { replayed, failed };
};

/** Asks the services to handle their dead letters again, one after another. */
const replayLetters = async (
  link: NatsLink | null,
  letters: readonly StoredDeadLetter[],
): Promise<ReplayOutcome> => {
  if (link === null || letters.length === 0) return { replayed: 0, failed: [] };
  const { replayDeadLetter } = await import('@antiphon/messaging');
  const failed: { what: string; reason: string }[] = [];
  let replayed = 0;
  for (const letter of letters)
    try {
      await replayDeadLetter(link, letter);
      replayed++;
    } catch (error) {
      failed.push({ what: `message ${letter.sequence} of ${letter.consumer}`, reason: reasonOf(error) });
    }
  return { replayed, failed };
};

/** Replays parked streams and dead letters, and sets exit code 1 where any stays parked. */
export const replay = (context: CommandContext, filter: DlqFilter): Promise<void> =>
  withStores(context, filter, async ({ pool, link }) => {
    const streams = await replayStreams(pool, await readParked(pool, filter), filter);
    const messages = await replayLetters(link, await readLetters(link, filter));
    const replayed = streams.replayed + messages.replayed;
    const failed = [...streams.failed, ...messages.failed];
    const text = [
      `${streams.replayed} streams and ${messages.replayed} messages replayed, ${failed.length} stay parked`,
      ...failed.map(({ what, reason }) => `  ${what}: ${reason}`),
    ].join('\n');
    context.output.result({ replayed, streams, messages }, text);
    if (failed.length > 0) process.exitCode = 1;
  });
