import { isTurnEnd, turnEndSubject } from '@antiphon/contracts/agent';
import type { RecordedEvent } from '@antiphon/event-store';
import type { Announcement } from '@antiphon/messaging';

const SESSION_PREFIX = 'session-';

/**
 * Returns the message of the relay that tells gateways of the end of a turn. The driver's last
 * frame may be lost, and gateways do not read all events.
 */
export const announceTurnEnd = ({ type, workspace, streamId, data }: RecordedEvent): Announcement | null =>
  isTurnEnd(type) && streamId.startsWith(SESSION_PREFIX) && typeof data['turnId'] === 'string'
    ? { subject: turnEndSubject(workspace, streamId.slice(SESSION_PREFIX.length)), data: data['turnId'] }
    : null;
