import type { LogEvent } from '@antiphon/client';
import { deleteTurnPart } from '@antiphon/contracts/session-fold';
import type { Transcript } from './transcript.js';

/** A message that a person deleted, at any position of the log. */
export interface Deletion {
  readonly turnId: string;
  readonly part: 'message' | 'answer';
}

/** Returns the deletions among events. */
export const deletionsOf = (events: readonly LogEvent[]): readonly Deletion[] =>
  events
    .filter(({ type }) => type === 'ChatMessageDeleted')
    .map(({ data }) => {
      const { turnId, part } = (data ?? {}) as Readonly<Record<string, unknown>>;
      return { turnId: String(turnId), part: part === 'answer' ? 'answer' : 'message' };
    });

/** Removes deleted messages: what was deleted later is deleted in views of the past, too. */
export const withoutDeleted = (transcript: Transcript, deletions: readonly Deletion[]): Transcript => {
  if (deletions.length === 0) return transcript;
  const turns = transcript.turns.map((turn) =>
    deletions
      .filter(({ turnId }) => turnId === turn.turnId)
      .reduce((now, { part }) => deleteTurnPart(now, part), turn),
  );
  return { ...transcript, turns };
};
