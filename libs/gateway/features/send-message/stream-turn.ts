import type { Frame } from '@antiphon/contracts/agent';
import { defineHistogram } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import type { RpcCall } from '../answer-rpc/rpc-method.js';
import type { SessionFeeds } from '../stream-frames/session-feeds.js';

/** What the agent answered once the turn was committed. */
export interface AcceptedTurn {
  readonly sessionId: string;
  readonly turnId: string;
  readonly agentId: string;
  readonly acceptedOffset: number | null;
  readonly joined: boolean;
}

const firstText = defineHistogram(
  'antiphon_turn_first_text_seconds',
  "From a client's message until the first text of its answer is on the client's socket",
);

interface Asked extends Pick<RpcCall<unknown>, 'connection' | 'id' | 'workspace' | 'requestId'> {
  /** By the monotonic clock, ms. */
  readonly askedAt: number;
}

/** Measures the first text of a turn that this request began; a joined one began earlier. */
const measureFirstText = (askedAt: number, joined: boolean): ((frame: Frame) => void) => {
  let seen = joined;
  return ({ event }) => {
    if (seen || event !== 'text') return;
    seen = true;
    firstText.record((performance.now() - askedAt) / 1_000);
  };
};

/**
 * Streams one turn to the client that asked for it: `accepted` at once, then its frames up to `done`.
 * The turn itself does not depend on the client: when the connection ends, only the streaming does.
 */
export const streamTurn = (
  feeds: SessionFeeds,
  logger: Logger,
  { connection, id, workspace, requestId, askedAt }: Asked,
  { sessionId, turnId, agentId, acceptedOffset, joined }: AcceptedTurn,
): void => {
  const accepted = { sessionId, turnId, agent: agentId };
  connection.frame(id, sessionId, { event: 'accepted', data: accepted, offset: acceptedOffset });

  const measure = measureFirstText(askedAt, joined);
  const deliver = (frame: Frame): void => {
    // The sequence's own `accepted` was given above; frames of other turns belong to other requests.
    if (frame.turnId !== turnId || frame.event === 'accepted') return;
    connection.frame(id, sessionId, frame);
    measure(frame);
    if (frame.event === 'done') leave();
  };
  const unfollow = feeds.follow({
    workspace,
    sessionId,
    turnId,
    after: acceptedOffset,
    // A joined turn may be over: what is wanted then lies in the past.
    catchUp: joined,
    deliver,
    room: () => connection.room(sessionId),
    onError: (error) =>
      logger.error({ err: error, requestId, sessionId, turnId }, 'cannot catch up on a turn'),
  });
  const leave = connection.hold(unfollow);
};
