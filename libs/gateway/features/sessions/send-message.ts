import { Inject } from '@nestjs/common';
import { WebSocketGateway } from '@nestjs/websockets';
import { newSession, type SessionTarget } from '@antiphon/contracts/agent';
import { METHODS } from '@antiphon/contracts/reference';
import { failpoint } from '@antiphon/kernel';
import { recordTurnStage, type Logger } from '@antiphon/observability';
import { LOGGER, REQUESTS } from '@antiphon/service-host';
import { HandleMethod } from '../sockets/handle-method.js';
import type { MethodCall, RpcResult } from '../sockets/rpc-method.js';
import { SESSION_FEEDS, type GatewayRequests } from '../gateway.ports.js';
import type { SessionFeeds } from '../frames/session-feeds.js';
import { commonOf, resolveAddress, WorkspaceRouters } from './session-methods.js';
import { streamTurn } from './stream-turn.js';
import { SubmitTurns } from './submit-turns.js';

/** Content that starts a new session instead of a turn. */
const NEW_SESSION_COMMAND = '/new';

type SendCall = MethodCall<'chat.send' | 'session.send'>;

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
    if (content.trim() === NEW_SESSION_COMMAND) return this.requests.request(newSession, common);
    call.connection.requireStreamRoom();
    const sentAt = recordTurnStage('request_sent', call.receivedAt);
    const turn = await this.turns.submit({ ...common, content });
    if (!turn.joined) recordTurnStage('turn_accepted', sentAt);
    await failpoint('gateway.command.accepted');
    streamTurn(this.feeds, this.logger, call, turn);
    return undefined;
  }
}
