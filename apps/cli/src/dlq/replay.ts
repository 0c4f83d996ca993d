import { replayParked } from '@antiphon/event-store';
import type { ParkedStream } from '@antiphon/event-store';
import type { StoredDeadLetter, NatsLink } from '@antiphon/messaging';
import type pg from 'pg';
import { allProjections } from '../projections/all-projections.js';

/** What was replayed, and what stays where it is. */
export interface Replayed {
  readonly replayed: number;
  readonly failed: readonly { readonly what: string; readonly reason: string }[];
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** By this version's handlers. Each projection is moved by nobody else meanwhile. */
export const replayStreams = async (
  pool: pg.Pool,
  parked: readonly ParkedStream[],
  { stream }: { readonly stream?: string },
): Promise<Replayed> => {
  const failed: { what: string; reason: string }[] = [];
  let replayed = 0;
  for (const name of new Set(parked.map(({ projection }) => projection))) {
    const definition = allProjections.find((known) => known.name === name);
    if (!definition) {
      failed.push({ what: `projection ${name}`, reason: 'this version has no such projection' });
      continue;
    }
    const filter = stream === undefined ? {} : { streamId: stream };
    const result = await replayParked({ ...definition, pool }, filter);
    replayed += result.replayed;
    for (const { streamId, error } of result.stillParked)
      failed.push({ what: `projection ${name}: ${streamId}`, reason: reasonOf(error) });
  }
  return { replayed, failed };
};

/** By the services themselves, one after another. */
export const replayLetters = async (
  link: NatsLink | null,
  letters: readonly StoredDeadLetter[],
): Promise<Replayed> => {
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
