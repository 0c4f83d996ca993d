import type { SessionEvent, SessionEventOf } from './events.js';

/** Status of a turn that has ended. */
export type TurnEndStatus = 'completed' | 'failed' | 'cancelled';

/** Event types that end a turn. Exactly one of them follows each `TurnRequested`. */
export const TURN_ENDS = [
  'TurnCompleted',
  'TurnFailed',
  'TurnCancelled',
] as const satisfies readonly SessionEvent['type'][];
export type TurnEndType = (typeof TURN_ENDS)[number];
export type TurnEndEvent = SessionEventOf<TurnEndType>;

/** Status of a turn after each terminal event. */
export const TURN_END_STATUS = {
  TurnCompleted: 'completed',
  TurnFailed: 'failed',
  TurnCancelled: 'cancelled',
} as const satisfies Record<TurnEndType, TurnEndStatus>;

/** Returns true for the type of an event that ends a turn. */
export const isTurnEnd = (type: string): type is TurnEndType =>
  (TURN_ENDS as readonly string[]).includes(type);

/** Returns true for an event that ends a turn, and narrows it. */
export const isTurnEndEvent = (event: SessionEvent): event is TurnEndEvent => isTurnEnd(event.type);

/** SQL list of the terminal event types, for `type in (…)`. */
export const TURN_ENDS_SQL = TURN_ENDS.map((type) => `'${type}'`).join(', ');
