import { ConnectParams, LIMITS, PROTOCOL_VERSION, RPC } from '@antiphon/contracts/gateway';
import type { Principal } from '@antiphon/contracts/identity';
import type { JsonValue } from '@antiphon/kernel';
import { findJsonExcess } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { RawData, WebSocket } from 'ws';
import { z } from 'zod';
import type { Authenticator } from '../access/authenticator.js';
import { isApiKey } from '../access/api-key-text.js';
import type { ClientConnection } from './client-connection.js';

/** First frame of a client that has to authenticate. Extra fields are ignored and grant nothing. */
const ConnectFrame = z.object({
  id: z.union([z.string(), z.number(), z.null()]).optional(),
  method: z.literal('connect'),
  params: ConnectParams.loose(),
});
type ConnectFrame = z.infer<typeof ConnectFrame>;

/** Close code for a client that did not authenticate. */
export const CLOSE_UNAUTHENTICATED = 4401;
/** Close code for a client that authenticates while the keys cannot be read: try again. */
const CLOSE_TRY_AGAIN = 1013;

type Receive = (text: string, bytes: number) => void;

export interface AuthenticationOptions {
  readonly socket: WebSocket;
  readonly connection: ClientConnection;
  readonly authenticator: Pick<Authenticator, 'authenticate' | 'authenticateForeign'>;
  /** True for a page of another origin, which is never the local operator. */
  readonly isForeign?: boolean;
  /** Principal of the upgrade; null if the client has to authenticate by its first frame. */
  readonly principal: Principal | null;
  /**
   * True if the principal needed no credential. An API key of the first frame then replaces it.
   */
  readonly isLocal?: boolean;
  readonly capabilities: readonly string[];
  readonly logger: Logger;
  /**
   * Called after authentication, and again for an API key of a local client. Returns the receiver
   * of all further messages.
   */
  readonly onReady: (principal: Principal, capabilities: readonly string[]) => Receive;
}

const parseConnect = (text: string): ConnectFrame | undefined => {
  if (findJsonExcess(text) !== null) return undefined;
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
  /** Messages that arrived while the credential is checked; null before. */
  #held: Buffer[] | null = null;
  #isAcknowledged = false;
  /** True until the first message of a client that needed no credential. */
  #mayNameKey: boolean;

  constructor(options: AuthenticationOptions) {
    const { socket, principal, isLocal = false } = options;
    this.#options = options;
    this.#mayNameKey = isLocal;
    this.#deadline = setTimeout(() => this.#refuse('no connect frame came in time'), LIMITS.connectMs);
    socket.once('close', () => clearTimeout(this.#deadline));
    socket.on('message', (data, isBinary) => this.#onMessage(data, isBinary));
    if (principal) this.#accept(principal);
  }

  #onMessage(data: RawData, isBinary: boolean): void {
    const { socket, connection } = this.#options;
    // A client whose key was revoked may ignore the close.
    if (socket.readyState !== socket.OPEN) return;
    if (isBinary) return connection.close(1003, 'text frames only');
    const bytes = toBuffer(data);
    if (this.#mayNameKey && this.#namesKey(bytes)) this.#receive = null;
    this.#mayNameKey = false;
    if (this.#receive) this.#receive(bytes.toString('utf8'), bytes.length);
    else if (this.#held) this.#held.push(bytes);
    else void this.#connect(bytes.toString('utf8'));
  }

  /** Returns true for a first frame with an API key, whose rights replace those of a local client. */
  #namesKey(bytes: Buffer): boolean {
    if (bytes.length > LIMITS.connectBytes) return false;
    const token = parseConnect(bytes.toString('utf8'))?.params.token;
    return token !== undefined && isApiKey(token);
  }

  async #connect(text: string): Promise<void> {
    const { socket, connection } = this.#options;
    const frame = parseConnect(text);
    if (!frame) return this.#refuse('the first frame must be {"method":"connect","params":{"token":"…"}}');
    this.#held = [];
    socket.pause();
    try {
      const principal = await this.#authenticate(frame);
      if (!principal || socket.readyState !== socket.OPEN) return;
      this.#accept(principal, frame.params.capabilities);
      if (frame.id !== undefined) connection.respond(frame.id, { connectionId: connection.connectionId });
      for (const bytes of this.#held) this.#receive?.(bytes.toString('utf8'), bytes.length);
    } finally {
      socket.resume();
    }
  }

  /** Returns the principal of a frame's token. Closes the socket and returns null for none. */
  async #authenticate({ id = null, params: { token } }: ConnectFrame): Promise<Principal | null> {
    const { authenticator, connection, logger, isForeign = false } = this.#options;
    const { connectionId, address } = connection;
    try {
      const { principal, retryAfterSeconds } = isForeign
        ? await authenticator.authenticateForeign(token, address)
        : await authenticator.authenticate(token, address);
      if (principal) return principal;
      if (retryAfterSeconds === 0) this.#refuse('the token is not valid', { id });
      else this.#refuse('too many failed attempts', { id, code: RPC.exhausted, data: { retryAfterSeconds } });
    } catch (error) {
      clearTimeout(this.#deadline);
      logger.warn({ connectionId, address, err: error }, 'socket authentication failed');
      connection.fail(id, error, connectionId);
      connection.close(CLOSE_TRY_AGAIN, 'try again');
    }
    return null;
  }

  #accept(principal: Principal, named: readonly string[] = []): void {
    const { connection, capabilities, onReady } = this.#options;
    clearTimeout(this.#deadline);
    if (!this.#isAcknowledged)
      connection.send({
        type: 'session.ack',
        protocol: PROTOCOL_VERSION,
        capabilities: [...capabilities],
        connectionId: connection.connectionId,
      });
    this.#isAcknowledged = true;
    this.#receive = onReady(principal, named);
  }

  #refuse(
    reason: string,
    {
      id = null,
      code = RPC.unauthenticated,
      data = {},
    }: { readonly id?: JsonValue; readonly code?: number; readonly data?: Record<string, JsonValue> } = {},
  ): void {
    const { connection, logger } = this.#options;
    clearTimeout(this.#deadline);
    const { connectionId, address } = connection;
    logger.info({ connectionId, address, reason }, 'socket not authenticated');
    connection.send({ id, error: { code, message: reason, data } });
    connection.close(CLOSE_UNAUTHENTICATED, 'unauthenticated');
  }
}

/**
 * Authenticates a client: at once if its upgrade did, else by a `connect` frame within the timeout.
 */
export const authenticateSocket = (options: AuthenticationOptions): void => {
  new SocketAuthentication(options);
};
