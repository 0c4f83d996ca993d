import type { Frame } from '@antiphon/contracts/agent';
import { defineHistogram, keepContext, recordTurnStage } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import type { RpcCall } from '../sockets/rpc-method.js';
import type { SessionFeeds } from '../frames/session-feeds.js';

/** Reply of the agent service once the turn is committed. */
export interface AcceptedTurn {
  readonly sessionId: string;
  readonly turnId: string;
  readonly agentId: string;
  readonly acceptedOffset: number | null;
  /** Offset before the first frame of a turn that waits for its agent. */
  readonly waitsAfter?: number | undefined;
  readonly joined: boolean;
}

const firstText = defineHistogram(
  'antiphon_turn_first_text_seconds',
  "From a client's message until the first text of its answer is on the client's socket",
);

type TurnRequest = Pick<RpcCall<unknown>, 'connection' | 'id' | 'workspace' | 'requestId' | 'receivedAt'>;

/**
 * Returns the function that measures a turn by the frames that were sent. A joined turn began
 * earlier and is not measured.
 */
const measureFrames = (receivedAt: number, joined: boolean): ((frame: Frame) => void) => {
  let stageAt = performance.now();
  let hasText = joined;
  return ({ event }) => {
    if (!hasText && event === 'text') {
      hasText = true;
      firstText.record((performance.now() - receivedAt) / 1_000);
      stageAt = recordTurnStage('first_text_sent', stageAt);
    }
    if (!joined && event === 'done') recordTurnStage('done_sent', stageAt);
  };
};

/**
 * Streams one turn to the client that requested it: `accepted` at once, then its frames up to
 * `done`. When the connection closes, only the streaming ends; the turn continues.
 */
export const streamTurn = (
  feeds: SessionFeeds,
  logger: Logger,
  { connection, id, workspace, requestId, receivedAt }: TurnRequest,
  { sessionId, turnId, agentId, acceptedOffset, waitsAfter, joined }: AcceptedTurn,
): void => {
  const accepted = { sessionId, turnId, agent: agentId };
  connection.frame(id, sessionId, { event: 'accepted', data: accepted, offset: acceptedOffset });

  const inRequest = keepContext({ sessionId, turnId });
  const measure = measureFrames(receivedAt, joined);
  const deliver = (frame: Frame): void => {
    // `accepted` was sent above; frames of other turns belong to other requests.
    if (frame.turnId !== turnId || frame.event === 'accepted') return;
    connection.frame(id, sessionId, frame);
    measure(frame);
    if (frame.event !== 'done') return;
    stop();
    const { status } = frame.data as { readonly status?: string };
    const durationMs = Math.round(performance.now() - receivedAt);
    inRequest(() => logger.debug({ requestId, status, durationMs }, 'turn streamed'));
  };
  const unfollow = feeds.follow({
    workspace,
    sessionId,
    turnId,
    after: acceptedOffset ?? waitsAfter ?? null,
    // A joined turn may have ended, so that its frames are only in the log. That a turn waits may
    // have been sent by now.
    catchUp: joined || waitsAfter !== undefined,
    deliver,
    waitForRoom: () => connection.waitForRoom(sessionId),
    onError: (err) =>
      inRequest(() => logger.error({ err, requestId, sessionId, turnId }, 'turn catch-up failed')),
  });
  const stop = connection.openStream(id, unfollow);
};
