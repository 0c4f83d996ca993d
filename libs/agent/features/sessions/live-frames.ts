import { liveSubject } from '@antiphon/contracts/agent';
import type { Frame, LiveFrame } from '@antiphon/contracts/agent';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';

/** Sends frames to whoever watches a session. Losing one loses nothing: readers see the gap and read the log. */
export type PublishFrames = (
  workspace: string,
  sessionId: string,
  epoch: number,
  frames: readonly Frame[],
) => void;

const encoder = new TextEncoder();

export const createPublishFrames = (nats: NatsLink, logger: Logger): PublishFrames => {
  const publish = (subject: string, frame: LiveFrame): void => {
    const { connection } = nats;
    const payload = encoder.encode(JSON.stringify(frame));
    // A frame that is larger than a message may be is read from the log; the next one names it as its predecessor.
    if (payload.length <= (connection.info?.max_payload ?? 0)) connection.publish(subject, payload);
    else
      logger.debug({ offset: frame.offset, bytes: payload.length }, 'a frame is too large for live delivery');
  };
  return (workspace, sessionId, epoch, frames) => {
    // While the connection is down the client library would pile frames up, and send them long after their turn.
    if (!nats.isConnected() || nats.connection.isDraining()) return;
    const subject = liveSubject(workspace, sessionId);
    for (const frame of frames) publish(subject, { ...frame, epoch });
  };
};
