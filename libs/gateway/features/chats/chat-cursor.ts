import { conflict, invalid } from '@antiphon/kernel';

/** Position in the events of a chat. */
export interface ChatCursor {
  /** Epoch of the log. A restore of the log begins another one. */
  readonly epoch: number;
  readonly sessionId: string;
  /** Offset of a frame of the session, 0 before the first. */
  readonly offset: number;
}

const FORM = /^(\d{1,15})\.([0-9a-f]{32})\.(\d{1,16})$/;

const compact = (sessionId: string): string => sessionId.replaceAll('-', '').toLowerCase();

/** Returns the id of an event: epoch, session and offset. It is the same on every gateway. */
export const toEventId = ({ epoch, sessionId, offset }: ChatCursor): string =>
  `${epoch}.${compact(sessionId)}.${offset}`;

/**
 * Returns the offset of an event id. Throws `CHAT.CURSOR_MALFORMED`, `CHAT.CURSOR_FOREIGN` for the
 * id of another chat, and `GATEWAY.EPOCH_CHANGED` for one of the log before a restore.
 */
export const offsetOfEventId = (id: string, { epoch, sessionId }: Omit<ChatCursor, 'offset'>): number => {
  const match = FORM.exec(id);
  const offset = Number(match?.[3]);
  if (!match || !Number.isSafeInteger(offset))
    throw invalid(
      'CHAT.CURSOR_MALFORMED',
      'this is no event id of a chat: send the last id, or none for all events',
    );
  if (match[2] !== compact(sessionId))
    throw conflict(
      'CHAT.CURSOR_FOREIGN',
      'this event id is of another chat: send the last id of this one, or none',
    );
  const given = Number(match[1]);
  if (given === epoch) return offset;
  const message = `the log was restored since this id was issued (epoch ${given}, now ${epoch}): begin without one`;
  throw conflict('GATEWAY.EPOCH_CHANGED', message, { data: { given, epoch } });
};
