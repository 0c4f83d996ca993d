import { ClientError, createClient, type WebSocketLike } from '@antiphon/client';
import { AppError, type ErrorKind } from '@antiphon/kernel';
import { WebSocket } from 'ws';
import type { GatewayAddress } from '../connection/gateway-address.js';
import { KIND_OF_STATUS, unreachable } from '../connection/gateway-http.js';

/** One frame of a session's stream. */
export interface ChatFrame {
  readonly event: string;
  readonly data: unknown;
  readonly offset: number;
}

/** A message to send, or a session to read after an offset. */
export type ChatRequest =
  | { readonly method: 'chat.send'; readonly params: Parameters<Client['chat']>[0] }
  | { readonly method: 'session.send'; readonly params: Parameters<Client['send']>[0] }
  | {
      readonly method: 'session.resume';
      readonly params: { readonly sessionId: string; readonly after: number };
    };

type Client = ReturnType<typeof createClient>;

/** Time for which a lost gateway is waited for, ms. */
const GIVE_UP_MS = 30_000;

/** Kinds of JSON-RPC errors (docs/contract.md). The contracts would load their schemas as well. */
const KIND_OF_RPC: Readonly<Record<number, ErrorKind>> = {
  [-32_602]: 'invalid',
  [-32_001]: 'unauthenticated',
  [-32_003]: 'forbidden',
  [-32_004]: 'not_found',
  [-32_009]: 'conflict',
  [-32_029]: 'exhausted',
  [-32_053]: 'transient',
};

const disconnected = (): AppError =>
  new AppError(
    'transient',
    'CLI.DISCONNECTED',
    'the connection was lost. The turn continues in the agent; send to the same session to see its answer',
  );

const toAppError = (error: unknown): unknown => {
  if (!(error instanceof ClientError)) return error;
  if (error.code === 'CLIENT.UNREACHABLE') return disconnected();
  const { rpc, status, code, message, data } = error;
  const kind = rpc === undefined ? KIND_OF_STATUS[status ?? 0] : KIND_OF_RPC[rpc];
  return new AppError(kind ?? 'bug', code, message, { data: { ...data } });
};

const connect = async (gateway: GatewayAddress): Promise<Client> => {
  const client = createClient({
    url: gateway.url,
    token: gateway.token ?? undefined,
    sendTokenBy: 'header',
    // Loading the WebSocket of Node takes twice the time of the rest of the command.
    openWebSocket: (url, headers) => new WebSocket(url, { headers }) as unknown as WebSocketLike,
    giveUpAfterMs: GIVE_UP_MS,
  });
  try {
    await client.connect();
    return client;
  } catch (error) {
    client.close();
    const isUnreachable = error instanceof ClientError && error.code === 'CLIENT.UNREACHABLE';
    throw isUnreachable ? unreachable(gateway, error) : toAppError(error);
  }
};

const start = (client: Client, { method, params }: ChatRequest) => {
  if (method === 'session.resume') return client.follow(params.sessionId, params.after);
  return method === 'chat.send' ? client.chat(params) : client.send(params);
};

/**
 * Sends one request and passes its frames to `onFrame` until `done`, through lost connections.
 * Resolves with the result where the response is a result and not frames. An abort of `signal` ends
 * the stream, not the turn.
 */
export const chat = async (
  gateway: GatewayAddress,
  request: ChatRequest,
  onFrame: (frame: ChatFrame) => void,
  { signal }: { readonly signal: AbortSignal },
): Promise<unknown> => {
  const client = await connect(gateway);
  try {
    const stream = start(client, request);
    signal.addEventListener('abort', () => stream.detach(), { once: true });
    if (signal.aborted) stream.detach();
    for await (const frame of stream) {
      onFrame(frame);
      if (frame.event === 'done') break;
    }
    return 'result' in stream ? stream.result : undefined;
  } catch (error) {
    throw toAppError(error);
  } finally {
    client.close();
  }
};
