import type { LogEvent } from '@antiphon/client';

/** Number of events before and after an event among which its cause and effects are looked for. */
export const NEAR = 200;

/** Events that an event came from, and those that came from it. */
export interface Causes {
  /** Event that caused it; null if it is not among the near ones. */
  readonly cause: LogEvent | null;
  /** Later events that name it as their cause, or those of its request if there are none. */
  readonly effects: readonly LogEvent[];
  readonly isByRequest: boolean;
}

const originOf = ({ metadata }: LogEvent) =>
  (metadata ?? {}) as { readonly causationId?: string; readonly correlationId?: string };

/** Finds the cause and the effects of an event among the events before and after it. */
export const causesOf = (
  event: LogEvent,
  before: readonly LogEvent[],
  after: readonly LogEvent[],
): Causes => {
  const { causationId, correlationId } = originOf(event);
  const cause = before.find(({ eventId }) => eventId === causationId) ?? null;
  const effects = after.filter((later) => originOf(later).causationId === event.eventId);
  if (effects.length > 0 || correlationId === undefined) return { cause, effects, isByRequest: false };
  const same = after.filter((later) => originOf(later).correlationId === correlationId);
  return { cause, effects: same, isByRequest: true };
};
