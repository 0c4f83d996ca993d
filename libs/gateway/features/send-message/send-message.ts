import { newSession, submitTurn, type SessionTarget } from '@antiphon/contracts/agent';
import { ChatSendParams, SessionSendParams } from '@antiphon/contracts/gateway';
import { failpoint } from '@antiphon/kernel';
import { requestWithRetry, type RequestOptions } from '@antiphon/messaging';
import type { Router } from '@antiphon/gateway-domain';
import type { Logger } from '@antiphon/observability';
import { defineMethod, type RpcCall, type RpcMethod, type RpcResult } from '../answer-rpc/rpc-method.js';
import type { GatewayRequests } from '../gateway-requests.port.js';
import type { SessionFeeds } from '../stream-frames/session-feeds.js';
import { addressOf } from './address-of.js';
import { streamTurn } from './stream-turn.js';

export interface SendMessageDeps {
  readonly requests: GatewayRequests;
  readonly feeds: SessionFeeds;
  readonly router: Router;
  readonly logger: Logger;
}

/** The message that begins a new session instead of a turn (contract §3). */
const NEW_SESSION_COMMAND = '/new';

interface Message {
  readonly target: SessionTarget;
  readonly content: string;
  readonly idempotencyKey: string | undefined;
}

const submit = async (
  { requests, feeds, logger }: SendMessageDeps,
  call: RpcCall<unknown>,
  { target, content, idempotencyKey }: Message,
): Promise<RpcResult> => {
  const { workspace, caller } = call;
  const askedAt = performance.now();
  const common = { workspace, caller, target, ...(idempotencyKey === undefined ? {} : { idempotencyKey }) };
  await failpoint('gateway.command.received');
  if (content.trim() === NEW_SESSION_COMMAND) return requests.request(newSession, common);
  const ask = (options?: RequestOptions) => requests.request(submitTurn, { ...common, content }, options);
  // Only under a key is a message that is sent twice the same one.
  const turn = await (idempotencyKey === undefined ? ask() : requestWithRetry(ask));
  await failpoint('gateway.command.accepted');
  streamTurn(feeds, logger, { ...call, askedAt }, turn);
  return undefined;
};

// Two requests on their way at once may reach two agent processes: the second one waits for the first's acceptance.
const send = (deps: SendMessageDeps, call: RpcCall<unknown>, message: Message): Promise<RpcResult> =>
  call.connection.inOrder(JSON.stringify(message.target), () => submit(deps, call, message));

/** `chat.send`: routed by the bindings to an agent's session for this address. */
export const chatSend = (deps: SendMessageDeps): RpcMethod =>
  defineMethod('chat.send', ChatSendParams, (call) =>
    send(deps, call, {
      target: { address: addressOf(deps.router, call.params) },
      content: call.params.content,
      idempotencyKey: call.params.idempotencyKey,
    }),
  );

/** `session.send`: to a session that exists. */
export const sessionSend = (deps: SendMessageDeps): RpcMethod =>
  defineMethod('session.send', SessionSendParams, (call) =>
    send(deps, call, {
      target: { sessionId: call.params.sessionId },
      content: call.params.content,
      idempotencyKey: call.params.idempotencyKey,
    }),
  );
