import { RPC } from '@antiphon/contracts/gateway';
import { AppError, type ErrorKind } from '@antiphon/kernel';
import { WebSocket } from 'ws';
import type { GatewayAddress } from '../connection/gateway-address.js';
import { unreachable } from '../connection/http-client.js';

/** A frame of the stream, as contract §3 has it. */
export interface ChatFrame {
  readonly event: string;
  readonly data: unknown;
  readonly offset: number;
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

interface Incoming {
  readonly type?: string;
  readonly id?: number | null;
  readonly event?: string;
  readonly data?: unknown;
  readonly offset?: number;
  readonly result?: unknown;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data?: Record<string, unknown>;
  };
}

const toAppError = ({ code, message, data }: NonNullable<Incoming['error']>): AppError =>
  new AppError(
    KIND_OF[code] ?? 'bug',
    String(data?.['code'] ?? `RPC.${code}`),
    message,
    data ? { data } : {},
  );

/**
 * Sends one request and hands out its frames until `done`; answers the result when the request has one instead.
 * A connection that is lost in between is an error: the turn goes on, and its session can be resumed.
 */
export const chat = (
  gateway: GatewayAddress,
  request: { method: string; params: Readonly<Record<string, unknown>> },
  onFrame: (frame: ChatFrame) => void,
): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const headers = gateway.token === null ? {} : { authorization: `Bearer ${gateway.token}` };
    const socket = new WebSocket(`${gateway.url.replace(/^http/, 'ws')}/ws`, { headers });
    let accepted = false;

    const finish = (settle: () => void): void => {
      settle();
      socket.terminate();
    };
    const receive = (message: Incoming): void => {
      if (message.type === 'session.ack') socket.send(JSON.stringify({ id: 1, ...request }));
      else if (message.error)
        finish(() => reject(toAppError(message.error as NonNullable<Incoming['error']>)));
      else if ('result' in message) finish(() => resolve(message.result));
      else if (message.event !== undefined) {
        accepted = true;
        onFrame({ event: message.event, data: message.data, offset: message.offset ?? 0 });
        if (message.event === 'done') finish(() => resolve(undefined));
      }
    };
    socket.on('message', (data: Buffer) => receive(JSON.parse(data.toString('utf8')) as Incoming));
    socket.on('unexpected-response', (_, response) =>
      finish(() =>
        reject(
          new AppError(
            response.statusCode === 401 ? 'unauthenticated' : 'forbidden',
            'CLI.REFUSED',
            `the gateway refused the connection (${response.statusCode})`,
          ),
        ),
      ),
    );
    socket.on('error', (cause) => reject(unreachable(gateway, cause)));
    socket.on('close', () =>
      reject(
        accepted
          ? new AppError(
              'transient',
              'CLI.DISCONNECTED',
              'the connection was lost; the turn goes on, and its session can be resumed',
            )
          : unreachable(gateway, undefined),
      ),
    );
  });
