import { SessionResumeParams } from '@antiphon/contracts/gateway';
import type { Logger } from '@antiphon/observability';
import { defineMethod, type RpcMethod } from '../answer-rpc/rpc-method.js';
import type { FrameLog } from '../stream-frames/frame-log.js';
import type { SessionFeeds } from '../stream-frames/session-feeds.js';

export interface SessionResumeDeps {
  readonly feeds: SessionFeeds;
  readonly frameLog: FrameLog;
  readonly logger: Logger;
}

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
      await frameLog.framesAfter(workspace, sessionId, Number.MAX_SAFE_INTEGER);
      const unfollow = feeds.follow({
        workspace,
        sessionId,
        after,
        catchUp: true,
        deliver: (frame) => connection.frame(id, sessionId, frame),
        onError: (error) =>
          logger.error({ err: error, requestId, sessionId }, 'cannot catch up on a session'),
      });
      connection.hold(unfollow, `resume/${sessionId}`);
      return undefined;
    },
  );
