import { Inject } from '@nestjs/common';
import { WebSocketGateway } from '@nestjs/websockets';
import { attemptOf } from '@antiphon/contracts/agent';
import { METHODS } from '@antiphon/contracts/reference';
import type { EventStore } from '@antiphon/event-store';
import { conflict, isAppError } from '@antiphon/kernel';
import { keepContext, type Logger } from '@antiphon/observability';
import { EVENT_STORE, LOGGER } from '@antiphon/service-host';
import { AgentAccess } from '../access/agent-access.js';
import type { FrameLog } from '../frames/frame-log.js';
import type { SessionFeeds } from '../frames/session-feeds.js';
import { FRAME_LOG, SESSION_FEEDS } from '../gateway.ports.js';
import { HandleMethod } from '../sockets/handle-method.js';
import type { MethodCall } from '../sockets/rpc-method.js';

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

/** Serves `session.resume`. */
@WebSocketGateway()
export class ResumeMethod {
  constructor(
    @Inject(SESSION_FEEDS) private readonly feeds: SessionFeeds,
    @Inject(FRAME_LOG) private readonly frameLog: FrameLog,
    @Inject(EVENT_STORE) private readonly store: EventStore,
    @Inject(AgentAccess) private readonly access: Pick<AgentAccess, 'requireSession'>,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /**
   * Streams every frame after an offset, first from the log and the `LIVE` stream, then live. With
   * a turn it streams that turn's frames, and ends with its `done`. It ends when the connection
   * closes or resumes the same again, and with the request's error when the log cannot provide the
   * frames (`LOG.ARCHIVED`). A transient error is logged, and the feed reads the log again.
   */
  @HandleMethod(METHODS['session.resume'])
  async resume(call: MethodCall<'session.resume'>): Promise<undefined> {
    const { params, workspace, principal, connection, id, requestId } = call;
    const { sessionId, after, turnId } = params;
    connection.requireStreamRoom();
    // Throws for an unknown session, or one of another workspace, before anything is streamed.
    await this.access.requireSession(principal, this.store, sessionId);
    await refuseOffsetAhead(this.frameLog, workspace, sessionId, after);
    const inRequest = keepContext({ sessionId });
    const onError = (error: unknown): void => {
      inRequest(() => this.logger.error({ err: error, requestId, sessionId }, 'session catch-up failed'));
      if (isAppError(error) && error.kind === 'transient') return;
      stop();
      connection.fail(id, error, requestId);
    };
    const unfollow = this.feeds.follow({
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
  }
}
