import { Inject } from '@nestjs/common';
import { WebSocketGateway } from '@nestjs/websockets';
import { newSession, type Frame, type SessionTarget } from '@antiphon/contracts/agent';
import { METHODS } from '@antiphon/contracts/reference';
import { failpoint } from '@antiphon/kernel';
import { defineHistogram, keepContext, recordTurnStage, type Logger } from '@antiphon/observability';
import { LOGGER, REQUESTS } from '@antiphon/service-host';
import { requireFilesOf } from '../access/access-guard.js';
import { HandleMethod } from '../sockets/handle-method.js';
import type { MethodCall, RpcCall, RpcResult } from '../sockets/rpc-method.js';
import { SESSION_FEEDS, type GatewayRequests } from '../gateway.ports.js';
import type { SessionFeeds } from '../frames/session-feeds.js';
import { commonOf, resolveAddress, WorkspaceRouters } from './session-methods.js';
import { SubmitTurns } from './submit-turns.js';

/** Content that starts a new session instead of a turn. */
const NEW_SESSION_COMMAND = '/new';

type SendCall = MethodCall<'chat.send' | 'session.send'>;

/** Reply of the agent service once the turn is committed. */
interface AcceptedTurn {
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
const streamTurn = (
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

/** Serves `chat.send` and `session.send`. */
@WebSocketGateway()
export class SendMethods {
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(SubmitTurns) private readonly turns: Pick<SubmitTurns, 'submit'>,
    @Inject(SESSION_FEEDS) private readonly feeds: SessionFeeds,
    @Inject(WorkspaceRouters) private readonly routers: Pick<WorkspaceRouters, 'of'>,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** The bindings route a message to an agent; the address determines the session. */
  @HandleMethod(METHODS['chat.send'])
  toAddress(call: MethodCall<'chat.send'>): Promise<RpcResult> {
    return this.send(call, { address: resolveAddress(this.routers.of(call.workspace), call.params) });
  }

  @HandleMethod(METHODS['session.send'])
  toSession(call: MethodCall<'session.send'>): Promise<RpcResult> {
    return this.send(call, { sessionId: call.params.sessionId });
  }

  // Two concurrent requests could reach two agent processes: the second waits for the first's
  // acceptance.
  private send(call: SendCall, target: SessionTarget): Promise<RpcResult> {
    return call.connection.runInOrder(JSON.stringify(target), () => this.submit(call, target));
  }

  private async submit(call: SendCall, target: SessionTarget): Promise<RpcResult> {
    const { content, idempotencyKey } = call.params;
    const common = { ...commonOf(call.principal), target, idempotencyKey };
    await failpoint('gateway.command.received');
    if (typeof content === 'string' && content.trim() === NEW_SESSION_COMMAND)
      return this.requests.request(newSession, common);
    requireFilesOf(call.principal, content);
    call.connection.requireStreamRoom();
    const sentAt = recordTurnStage('request_sent', call.receivedAt);
    const turn = await this.turns.submit({ ...common, content });
    if (!turn.joined) recordTurnStage('turn_accepted', sentAt);
    await failpoint('gateway.command.accepted');
    streamTurn(this.feeds, this.logger, call, turn);
    return undefined;
  }
}
