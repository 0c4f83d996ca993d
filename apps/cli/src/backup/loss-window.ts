import { existsSync, readFileSync } from 'node:fs';
import { parseRootLines } from '@antiphon/event-store';
import type { LogEnd } from '@antiphon/event-store';

/** A source that recorded a position of the log. */
export interface Witness {
  readonly where: string;
  readonly position: number;
  /** ISO 8601; null when the source has no time. */
  readonly at: string | null;
}

/** Events that a restore loses, as far as the witnesses show. */
export interface LossWindow {
  readonly from: Pick<LogEnd, 'position' | 'at'>;
  /** The witness with the highest position; null when none is after the backup. */
  readonly to: Witness | null;
  readonly events: number;
  readonly witnesses: readonly Witness[];
}

/** Reads the newest signed root of a file, if its epoch is the backup's or a later one. */
export const witnessInRoots = (file: string, epoch: number): Witness[] => {
  if (!existsSync(file)) return [];
  const root = parseRootLines(readFileSync(file, 'utf8')).roots.at(-1);
  return root !== undefined && root.epoch >= epoch
    ? [{ where: `signed roots (${file})`, position: root.position, at: root.at }]
    : [];
};

/**
 * Computes the loss. Positions of different epochs are compared as they are, which gives a lower
 * bound.
 */
export const lossWindow = (from: LogEnd, witnesses: readonly Witness[]): LossWindow => {
  const later = witnesses.filter(({ position }) => position > from.position);
  const to = later.reduce<Witness | null>(
    (best, one) => (best === null || one.position > best.position ? one : best),
    null,
  );
  const { position, at } = from;
  return { from: { position, at }, to, events: to === null ? 0 : to.position - position, witnesses };
};

const timeOf = (at: string | null): string => (at === null ? 'time unknown' : at);

export const renderLoss = ({ from, to, events }: LossWindow): string =>
  to === null
    ? `lost: no known event after position ${from.position} (${timeOf(from.at)})`
    : `lost: ${events} events, after position ${from.position} (${timeOf(from.at)}) up to position ${to.position} (${timeOf(to.at)}), known from: ${to.where}`;
