import { existsSync, readFileSync } from 'node:fs';
import type { LogEnd } from '@antiphon/event-store';

/** Something that knew how far the log had come. */
export interface Witness {
  readonly where: string;
  readonly position: number;
  /** ISO 8601; null when it does not say. */
  readonly at: string | null;
}

/** What a restore loses, as far as anything tells. */
export interface LossWindow {
  readonly from: Pick<LogEnd, 'position' | 'at'>;
  /** The furthest that any witness knew; null when none knew more than the backup. */
  readonly to: Witness | null;
  readonly events: number;
  readonly witnesses: readonly Witness[];
}

/** The newest signed root of a file, of the same history as the backup or one that followed it. */
export const witnessInRoots = (file: string, epoch: number): Witness[] => {
  if (!existsSync(file)) return [];
  const last = readFileSync(file, 'utf8').split('\n').filter(Boolean).at(-1);
  if (last === undefined) return [];
  try {
    const root = JSON.parse(last) as { epoch: number; position: number; at: string };
    return root.epoch >= epoch
      ? [{ where: `signed roots (${file})`, position: root.position, at: root.at }]
      : [];
  } catch {
    return [];
  }
};

/** Positions of different histories are compared as they are: a lower bound where the log was restored in between. */
export const lossWindow = (from: LogEnd, witnesses: readonly Witness[]): LossWindow => {
  const further = witnesses.filter(({ position }) => position > from.position);
  const to = further.reduce<Witness | null>(
    (best, one) => (best === null || one.position > best.position ? one : best),
    null,
  );
  const { position, at } = from;
  return { from: { position, at }, to, events: to === null ? 0 : to.position - position, witnesses };
};

const timeOf = (at: string | null): string => (at === null ? 'time unknown' : at);

export const renderLoss = ({ from, to, events }: LossWindow): string =>
  to === null
    ? `lost: nothing that anything here knows of after position ${from.position} (${timeOf(from.at)})`
    : `lost: ${events} events, after position ${from.position} (${timeOf(from.at)}) up to position ${to.position} (${timeOf(to.at)}), known from: ${to.where}`;
