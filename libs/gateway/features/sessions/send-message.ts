import { newSession, type SessionTarget } from '@antiphon/contracts/agent';
import { ChatSendParams, SessionSendParams } from '@antiphon/contracts/gateway';
import { failpoint } from '@antiphon/kernel';
import { recordTurnStage, type Logger } from '@antiphon/observability';
import { defineMethod, type RpcCall, type RpcMethod, type RpcResult } from '../sockets/rpc-method.js';
import type { GatewayRequests } from '../gateway.ports.js';
import type { SessionFeeds } from '../frames/session-feeds.js';
import { commonOf, resolveAddress, type RouterOf } from './session-methods.js';
import { streamTurn } from './stream-turn.js';
import type { SubmitTurns } from './submit-turns.js';

export interface SendMessageDeps {
  readonly requests: GatewayRequests;
  readonly turns: Pick<SubmitTurns, 'submit'>;
  readonly feeds: SessionFeeds;
  readonly routerOf: RouterOf;
  readonly logger: Logger;
}

/** Content that starts a new session instead of a turn. */
const NEW_SESSION_COMMAND = '/new';

interface Message {
  readonly target: SessionTarget;
  readonly content: string;
  readonly idempotencyKey: string | undefined;
}

const submit = async (
  { requests, turns, feeds, logger }: SendMessageDeps,
  call: RpcCall<unknown>,
  { target, content, idempotencyKey }: Message,
): Promise<RpcResult> => {
  const common = { ...commonOf(call.principal), target, idempotencyKey };
  await failpoint('gateway.command.received');
  if (content.trim() === NEW_SESSION_COMMAND) return requests.request(newSession, common);
  call.connection.requireStreamRoom();
  const sentAt = recordTurnStage('request_sent', call.receivedAt);
  const turn = await turns.submit({ ...common, content });
  if (!turn.joined) recordTurnStage('turn_accepted', sentAt);
  await failpoint('gateway.command.accepted');
  streamTurn(feeds, logger, call, turn);
  return undefined;
};

// Two concurrent requests could reach two agent processes: the second waits for the first's
// acceptance.
const send = (deps: SendMessageDeps, call: RpcCall<unknown>, message: Message): Promise<RpcResult> =>
  call.connection.runInOrder(JSON.stringify(message.target), () => submit(deps, call, message));

/**
 * Returns `chat.send`. The bindings route a message to an agent; the address determines the
 * session.
 */
export const chatSend = (deps: SendMessageDeps): RpcMethod =>
  defineMethod('chat.send', ChatSendParams, (call) =>
    send(deps, call, {
      target: { address: resolveAddress(deps.routerOf(call.workspace), call.params) },
      content: call.params.content,
      idempotencyKey: call.params.idempotencyKey,
    }),
  );

/** Returns `session.send`, which sends a message to an existing session. */
export const sessionSend = (deps: SendMessageDeps): RpcMethod =>
  defineMethod('session.send', SessionSendParams, (call) =>
    send(deps, call, {
      target: { sessionId: call.params.sessionId },
      content: call.params.content,
      idempotencyKey: call.params.idempotencyKey,
    }),
  );
