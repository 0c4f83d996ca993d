import { attemptOf } from '@antiphon/contracts/agent';
import { SessionResumeParams } from '@antiphon/contracts/gateway';
import { conflict, isAppError } from '@antiphon/kernel';
import { keepContext, type Logger } from '@antiphon/observability';
import type { Principal } from '@antiphon/contracts/identity';
import { defineMethod, type RpcMethod } from '../sockets/rpc-method.js';
import type { FrameLog } from '../frames/frame-log.js';
import type { SessionFeeds } from '../frames/session-feeds.js';

export interface SessionResumeDeps {
  readonly feeds: SessionFeeds;
  readonly frameLog: FrameLog;
  readonly logger: Logger;
  /** Throws unless the principal may read this session. */
  readonly requireSession: (principal: Principal, sessionId: string) => Promise<void>;
}

/**
 * Refuses an offset beyond the last attempt. An attempt is in the log before its first frame is
 * sent.
 */
const refuseOffsetAhead = async (frameLog: FrameLog, workspace: string, sessionId: string, after: number) => {
  const { attempt, lastOffset } = await frameLog.end(workspace, sessionId);
  if (attemptOf(after) <= attempt) return;
  throw conflict(
    'GATEWAY.OFFSET_AHEAD',
    `session ${sessionId} has no offset ${after}: it ends at ${lastOffset}; resume from there, or from 0 for all of it`,
    { data: { lastOffset } },
  );
};

/**
 * Returns `session.resume`. It streams every frame after an offset, first from the log and the
 * `LIVE` stream, then live. With a turn it streams that turn's frames, and ends with its `done`. It
 * ends when the connection closes or resumes the same again, and with the request's error when the
 * log cannot provide the frames (`LOG.ARCHIVED`). A transient error is logged, and the feed reads
 * the log again.
 */
export const sessionResume = ({ feeds, frameLog, logger, requireSession }: SessionResumeDeps): RpcMethod =>
  defineMethod(
    'session.resume',
    SessionResumeParams,
    async ({ params, workspace, principal, connection, id, requestId }) => {
      const { sessionId, after, turnId } = params;
      connection.requireStreamRoom();
      // Throws for an unknown session, or one of another workspace, before anything is streamed.
      await requireSession(principal, sessionId);
      await refuseOffsetAhead(frameLog, workspace, sessionId, after);
      const inRequest = keepContext({ sessionId });
      const onError = (error: unknown): void => {
        inRequest(() => logger.error({ err: error, requestId, sessionId }, 'session catch-up failed'));
        if (isAppError(error) && error.kind === 'transient') return;
        stop();
        connection.fail(id, error, requestId);
      };
      const unfollow = feeds.follow({
        workspace,
        sessionId,
        after,
        turnId,
        catchUp: true,
        deliver: (frame) => {
          if (turnId !== undefined && frame.turnId !== turnId) return;
          connection.frame(id, sessionId, frame);
          if (turnId !== undefined && frame.event === 'done') stop();
        },
        waitForRoom: () => connection.waitForRoom(sessionId),
        onError,
      });
      const stop = connection.openStream(id, unfollow, `resume/${sessionId}/${turnId ?? ''}`);
      return undefined;
    },
  );
