import { ConnectParams, LIMITS, PROTOCOL_VERSION, RPC } from '@antiphon/contracts/gateway';
import type { JsonValue } from '@antiphon/kernel';
import { nestsDeeperThan } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { RawData, WebSocket } from 'ws';
import { z } from 'zod';
import type { TokenGate } from '../access/token-gate.js';
import type { ClientConnection } from './client-connection.js';

/** First frame of a client that has to authenticate. Extra fields are ignored and grant nothing. */
const ConnectFrame = z.object({
  id: z.union([z.string(), z.number(), z.null()]).optional(),
  method: z.literal('connect'),
  params: ConnectParams.loose(),
});

/** Close code for a client that did not authenticate. */
export const CLOSE_UNAUTHENTICATED = 4401;

type Receive = (text: string, bytes: number) => void;

export interface AuthenticationOptions {
  readonly socket: WebSocket;
  readonly connection: ClientConnection;
  readonly gate: TokenGate;
  /** True if the upgrade authenticated the client. */
  readonly authenticated: boolean;
  readonly capabilities: readonly string[];
  readonly logger: Logger;
  /** Called once after authentication. Returns the receiver of all further messages. */
  readonly onReady: () => Receive;
}

const parseConnect = (text: string): z.infer<typeof ConnectFrame> | undefined => {
  if (nestsDeeperThan(text)) return undefined;
  try {
    return ConnectFrame.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined; // Not JSON: refused like any other first frame that is not `connect`.
  }
};

const toBuffer = (data: RawData): Buffer =>
  Buffer.isBuffer(data) ? data : Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);

/** Holds a socket's messages back until the client is authenticated, then passes them on. */
class SocketAuthentication {
  readonly #options: AuthenticationOptions;
  readonly #deadline: NodeJS.Timeout;
  #receive: Receive | null = null;

  constructor(options: AuthenticationOptions) {
    const { socket, authenticated } = options;
    this.#options = options;
    this.#deadline = setTimeout(() => this.#refuse('no connect frame came in time'), LIMITS.connectMs);
    socket.once('close', () => clearTimeout(this.#deadline));
    socket.on('message', (data, isBinary) => this.#onMessage(data, isBinary));
    if (authenticated) this.#accept();
  }

  #onMessage(data: RawData, isBinary: boolean): void {
    const { socket, connection } = this.#options;
    if (isBinary) return connection.close(1003, 'text frames only');
    const bytes = toBuffer(data);
    if (this.#receive) this.#receive(bytes.toString('utf8'), bytes.length);
    else if (socket.readyState === socket.OPEN) this.#authenticate(bytes.toString('utf8'));
  }

  #authenticate(text: string): void {
    const { connection, gate } = this.#options;
    const frame = parseConnect(text);
    if (!frame) return this.#refuse('the first frame must be {"method":"connect","params":{"token":"…"}}');
    if (!gate.accepts(frame.params.token)) {
      gate.recordFailure(connection.address);
      return this.#refuse('the token is not valid', frame.id ?? null);
    }
    this.#accept();
    if (frame.id !== undefined) connection.respond(frame.id, { connectionId: connection.connectionId });
  }

  #accept(): void {
    const { connection, capabilities, onReady } = this.#options;
    clearTimeout(this.#deadline);
    connection.send({
      type: 'session.ack',
      protocol: PROTOCOL_VERSION,
      capabilities: [...capabilities],
      connectionId: connection.connectionId,
    });
    this.#receive = onReady();
  }

  #refuse(reason: string, id: JsonValue = null): void {
    const { connection, logger } = this.#options;
    clearTimeout(this.#deadline);
    const { connectionId, address } = connection;
    logger.info({ connectionId, address, reason }, 'socket not authenticated');
    connection.send({ id, error: { code: RPC.unauthenticated, message: reason, data: {} } });
    connection.close(CLOSE_UNAUTHENTICATED, 'unauthenticated');
  }
}

/**
 * Authenticates a client: at once if its upgrade did, else by a `connect` frame within the timeout.
 */
export const authenticateSocket = (options: AuthenticationOptions): void => {
  new SocketAuthentication(options);
};
