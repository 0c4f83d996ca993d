import { ConnectParams, LIMITS, PROTOCOL_VERSION, RPC } from '@antiphon/contracts/gateway';
import type { JsonValue } from '@antiphon/kernel';
import { nestsDeeperThan } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { RawData, WebSocket } from 'ws';
import { z } from 'zod';
import type { ClientConnection } from '../answer-rpc/client-connection.js';
import type { TokenGate } from '../authenticate/token-gate.js';

/** The first frame of a client where a token is needed (contract §3). Fields that it adds grant nothing. */
const ConnectFrame = z.object({
  id: z.union([z.string(), z.number(), z.null()]).optional(),
  method: z.literal('connect'),
  params: ConnectParams.loose(),
});

/** The close code for a client that did not authenticate. */
export const CLOSE_UNAUTHENTICATED = 4401;

export interface HandshakeOptions {
  readonly socket: WebSocket;
  readonly connection: ClientConnection;
  readonly gate: TokenGate;
  readonly authenticated: boolean;
  readonly capabilities: readonly string[];
  readonly logger: Logger;
  /** Called once, when the client may speak; each later message goes there. */
  readonly onReady: () => (text: string, bytes: number) => void;
}

const parseConnect = (text: string): z.infer<typeof ConnectFrame> | undefined => {
  if (nestsDeeperThan(text)) return undefined;
  try {
    return ConnectFrame.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined; // Not JSON: answered like every other first frame that is no `connect`.
  }
};

const toText = (data: RawData): Buffer =>
  Buffer.isBuffer(data) ? data : Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);

/** Greets a client: at once where it is authenticated, else after a `connect` frame that comes in time. */
export const shakeHands = (options: HandshakeOptions): void => {
  const { socket, connection, gate, capabilities, logger, onReady } = options;
  let receive: ((text: string, bytes: number) => void) | null = null;

  const welcome = (): void => {
    clearTimeout(deadline);
    connection.send({
      type: 'session.ack',
      protocol: PROTOCOL_VERSION,
      capabilities: [...capabilities],
      connectionId: connection.connectionId,
    });
    receive = onReady();
  };

  const refuse = (reason: string, id: JsonValue = null): void => {
    clearTimeout(deadline);
    logger.info(
      { connectionId: connection.connectionId, address: connection.address },
      `not authenticated: ${reason}`,
    );
    connection.send({ id, error: { code: RPC.unauthenticated, message: reason, data: {} } });
    connection.close(CLOSE_UNAUTHENTICATED, 'unauthenticated');
  };

  const authenticate = (text: string): void => {
    const frame = parseConnect(text);
    if (!frame) return refuse('the first frame must be {"method":"connect","params":{"token":"…"}}');
    if (!gate.accepts(frame.params.token)) {
      gate.recordFailure(connection.address);
      return refuse('the token is not valid', frame.id ?? null);
    }
    welcome();
    if (frame.id !== undefined) connection.answer(frame.id, { connectionId: connection.connectionId });
  };

  const deadline = setTimeout(() => refuse('no connect frame came in time'), LIMITS.connectMs);
  socket.once('close', () => clearTimeout(deadline));
  socket.on('message', (data, isBinary) => {
    if (isBinary) return connection.close(1003, 'text frames only');
    const bytes = toText(data);
    if (receive) receive(bytes.toString('utf8'), bytes.length);
    else if (socket.readyState === socket.OPEN) authenticate(bytes.toString('utf8'));
  });
  if (options.authenticated) welcome();
};
