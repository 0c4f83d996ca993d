import { RPC } from '@antiphon/contracts/gateway';
import { AppError, type ErrorKind } from '@antiphon/kernel';
import { WebSocket } from 'ws';
import type { GatewayAddress } from '../connection/gateway-address.js';
import { unreachable } from '../connection/http-client.js';

/** One frame of a session's stream. */
export interface ChatFrame {
  readonly event: string;
  readonly data: unknown;
  readonly offset: number;
}

export interface ChatRequest {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

export interface StreamOptions {
  /** Ends the stream of frames, not the turn. */
  readonly signal?: AbortSignal;
  /** Returns whether a frame is the last one; by default `done` is. */
  readonly isLast?: (frame: ChatFrame) => boolean;
}

const KIND_OF: Readonly<Record<number, ErrorKind>> = {
  [RPC.invalidParams]: 'invalid',
  [RPC.unauthenticated]: 'unauthenticated',
  [RPC.forbidden]: 'forbidden',
  [RPC.notFound]: 'not_found',
  [RPC.conflict]: 'conflict',
  [RPC.exhausted]: 'exhausted',
  [RPC.engineDown]: 'transient',
};

interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: Record<string, unknown>;
}

interface IncomingMessage {
  readonly type?: string;
  readonly id?: number | null;
  readonly event?: string;
  readonly data?: unknown;
  readonly offset?: number;
  readonly result?: unknown;
  readonly error?: RpcError;
}

const toAppError = ({ code, message, data }: RpcError): AppError =>
  new AppError(KIND_OF[code] ?? 'bug', String(data?.['code'] ?? `RPC.${code}`), message, { data });

const refused = (statusCode: number | undefined): AppError =>
  new AppError(
    statusCode === 401 ? 'unauthenticated' : 'forbidden',
    'CLI.REFUSED',
    `the gateway refused the connection (${statusCode})`,
  );

const disconnected = (): AppError =>
  new AppError(
    'transient',
    'CLI.DISCONNECTED',
    'the connection was lost. The turn continues in the agent; send to the same session to see its answer',
  );

/**
 * Sends one request and passes its frames to `onFrame` until `done`. Resolves with the result where
 * the response is a result and not frames. A lost connection is an error, but the turn continues.
 * An abort of `signal` closes the connection and resolves.
 */
export const chat = (
  gateway: GatewayAddress,
  request: ChatRequest,
  onFrame: (frame: ChatFrame) => void,
  { signal, isLast = ({ event }) => event === 'done' }: StreamOptions = {},
): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const headers = gateway.token === null ? {} : { authorization: `Bearer ${gateway.token}` };
    const socket = new WebSocket(`${gateway.url.replace(/^http/, 'ws')}/ws`, { headers });
    let isAccepted = false;

    const finish = (settle: () => void): void => {
      settle();
      socket.terminate();
    };
    const receive = ({ type, error, event, data, offset = 0, ...rest }: IncomingMessage): void => {
      if (type === 'session.ack') socket.send(JSON.stringify({ id: 1, ...request }));
      else if (error) finish(() => reject(toAppError(error)));
      else if ('result' in rest) finish(() => resolve(rest.result));
      else if (event !== undefined) {
        isAccepted = true;
        onFrame({ event, data, offset });
        if (isLast({ event, data, offset })) finish(() => resolve(undefined));
      }
    };
    signal?.addEventListener('abort', () => finish(() => resolve(undefined)), { once: true });
    socket.on('message', (data: Buffer) => receive(JSON.parse(data.toString('utf8')) as IncomingMessage));
    socket.on('unexpected-response', (_, { statusCode }) => finish(() => reject(refused(statusCode))));
    socket.on('error', (cause) => reject(unreachable(gateway, cause)));
    socket.on('close', () => reject(isAccepted ? disconnected() : unreachable(gateway, undefined)));
  });
