import { liveSubject } from '@antiphon/contracts/agent';
import type { Frame, LiveFrame } from '@antiphon/contracts/agent';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';

/**
 * Publishes frames to the clients that watch a session. A lost frame loses no data: readers detect
 * the gap and read the log.
 */
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
    // Readers get a frame that exceeds the message limit from the log; the next one names it as its
    // predecessor.
    if (payload.length <= (connection.info?.max_payload ?? 0)) connection.publish(subject, payload);
    else logger.debug({ offset: frame.offset, bytes: payload.length }, 'live frame too large');
  };
  return (workspace, sessionId, epoch, frames) => {
    // Without a connection the client library would buffer frames and send them long after their
    // turn.
    if (!nats.isConnected() || nats.connection.isDraining()) return;
    const subject = liveSubject(workspace, sessionId);
    for (const frame of frames) publish(subject, { ...frame, epoch });
  };
};

/**
 * Reports ended turns. Frames are published after the commit, and `done` is the last frame of a
 * turn.
 */
export const publishAndReport =
  (publish: PublishFrames, turnEnded: (sessionId: string) => void): PublishFrames =>
  (workspace, sessionId, epoch, frames) => {
    publish(workspace, sessionId, epoch, frames);
    if (frames.some(({ event }) => event === 'done')) turnEnded(sessionId);
  };

/**
 * Sends each frame of a session once. Text is sent ahead of its event, and the fold of the event
 * yields the same frames again.
 */
export class FrameSender {
  private sentUpTo = 0;

  constructor(private readonly publish: (frames: readonly Frame[]) => void) {}

  send(frames: readonly Frame[]): void {
    const unsent = frames.filter(({ offset }) => offset > this.sentUpTo);
    if (unsent.length > 0) this.publish(unsent);
    this.sentUpTo = Math.max(this.sentUpTo, unsent.at(-1)?.offset ?? 0);
  }

  /** Skips frames up to `offset`: another process sent them, or readers get them from the log. */
  startAfter(offset: number): void {
    this.sentUpTo = offset;
  }
}
