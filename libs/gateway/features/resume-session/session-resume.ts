import { attemptOf } from '@antiphon/contracts/agent';
import { SessionResumeParams } from '@antiphon/contracts/gateway';
import { conflict } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { defineMethod, type RpcMethod } from '../answer-rpc/rpc-method.js';
import type { FrameLog } from '../stream-frames/frame-log.js';
import type { SessionFeeds } from '../stream-frames/session-feeds.js';

export interface SessionResumeDeps {
  readonly feeds: SessionFeeds;
  readonly frameLog: FrameLog;
  readonly logger: Logger;
}

/** An attempt is in the log before its first frame leaves: an offset beyond the last one's range was never given. */
const refuseAhead = async (frameLog: FrameLog, workspace: string, sessionId: string, after: number) => {
  const { attempt, lastOffset } = await frameLog.end(workspace, sessionId);
  if (attemptOf(after) <= attempt) return;
  throw conflict(
    'GATEWAY.OFFSET_AHEAD',
    `session ${sessionId} has no offset ${after}: it ends at ${lastOffset}; resume from there, or from 0 for all of it`,
    { data: { lastOffset } },
  );
};

/**
 * `session.resume`: every frame after the offset that the client has, first from the log and from what `LIVE`
 * still holds, then as they come, until the connection ends or resumes this session again.
 */
export const sessionResume = ({ feeds, frameLog, logger }: SessionResumeDeps): RpcMethod =>
  defineMethod(
    'session.resume',
    SessionResumeParams,
    async ({ params, workspace, connection, id, requestId }) => {
      const { sessionId, after } = params;
      // Refuses a session that does not exist (or is another workspace's) before anything is streamed.
      await refuseAhead(frameLog, workspace, sessionId, after);
      const unfollow = feeds.follow({
        workspace,
        sessionId,
        after,
        catchUp: true,
        deliver: (frame) => connection.frame(id, sessionId, frame),
        room: () => connection.room(sessionId),
        onError: (error) =>
          logger.error({ err: error, requestId, sessionId }, 'cannot catch up on a session'),
      });
      connection.hold(unfollow, `resume/${sessionId}`);
      return undefined;
    },
  );
