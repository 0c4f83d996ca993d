import { CLIENT_ERRORS, ClientError } from './errors.js';
import { FATAL_CLOSES, probeRefusal } from './gateway-socket.js';
import { resultFrames } from './result-frames.js';
import type { ServedTool, ToolCall } from './served-tool.js';
import { isNode, openGlobalWebSocket, readToken, toGatewayUrl } from './web-socket.js';
import type { OpenWebSocket, Token, WebSocketLike } from './web-socket.js';

export interface ServeToolsOptions {
  /** Address of the gateway, or of several that serve the same installation. */
  readonly url: string | readonly string[];
  /** API key with the scope `tools:serve`. A function is called before each connection. */
  readonly key?: Token | undefined;
  /** Calls that run at one time. Default: 16. */
  readonly concurrency?: number;
  /** Default: the WebSocket of the runtime. */
  readonly openWebSocket?: OpenWebSocket;
  /** First and longest delay between two attempts to connect, ms. Default: 100 and 5,000. */
  readonly backoff?: { readonly firstMs: number; readonly maxMs: number };
  /** Called with each event of the connection. Default: warnings of Node for failures. */
  readonly onEvent?: (event: ServeEvent) => void;
}

export type ServeEvent =
  | {
      readonly type: 'serving';
      readonly tools: readonly { readonly name: string; readonly version: number }[];
    }
  | { readonly type: 'refused'; readonly name: string; readonly code: string; readonly message: string }
  | { readonly type: 'disconnected' | 'error'; readonly message: string };

/** Program that serves tools, until it is stopped. */
export interface ToolServer {
  /** Resolves once a gateway has registered the tools. Rejects if it refuses the key. */
  readonly ready: Promise<void>;
  /** Takes no further call, completes those that run within the time, and disconnects. */
  stop(withinMs?: number): Promise<void>;
}

interface Frame {
  readonly type?: string;
  readonly callId?: string;
  readonly attemptId?: string;
  readonly [field: string]: unknown;
}

const PING_MS = 5_000;
const CONNECT_MS = 10_000;
const STOP_MS = 10_000;

interface Process {
  readonly emitWarning?: (message: string) => void;
}

/** Warns of failures on the standard error of Node. */
const report = (event: ServeEvent): void => {
  const { process } = globalThis as { readonly process?: Process };
  if (event.type === 'error' || event.type === 'refused')
    process?.emitWarning?.(`antiphon tools: ${event.message}`);
};

const toContent = (result: unknown): string =>
  typeof result === 'string' ? result : (JSON.stringify(result) ?? 'null');

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

class Server implements ToolServer {
  readonly ready: Promise<void>;
  readonly #tools: Readonly<Record<string, ServedTool>>;
  readonly #options: ServeToolsOptions;
  readonly #urls: readonly string[];
  readonly #running = new Map<
    string,
    { readonly controller: AbortController; readonly done: Promise<void> }
  >();
  #socket: WebSocketLike | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #heartbeat: ReturnType<typeof setInterval> | undefined;
  #failures = 0;
  #isStopped = false;
  #hasHeard = false;
  #hasOpened = false;
  #settle: { resolve: () => void; reject: (error: ClientError) => void };

  constructor(tools: Readonly<Record<string, ServedTool>>, options: ServeToolsOptions) {
    this.#tools = tools;
    this.#options = options;
    this.#urls = (typeof options.url === 'string' ? [options.url] : options.url).map(toGatewayUrl);
    const settle = { resolve: (): void => undefined, reject: (_: ClientError): void => undefined };
    this.ready = new Promise((resolve, reject) => Object.assign(settle, { resolve, reject }));
    this.#settle = settle;
    this.ready.catch(() => undefined);
    void this.#connect();
  }

  async stop(withinMs = STOP_MS): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#send({ type: 'tools.drain' });
    let timer: ReturnType<typeof setTimeout> | undefined;
    const limit = new Promise((resolve) => (timer = setTimeout(resolve, withinMs)));
    await Promise.race([Promise.allSettled([...this.#running.values()].map(({ done }) => done)), limit]);
    clearTimeout(timer);
    this.#disconnect();
    this.#settle.reject(new ClientError(CLIENT_ERRORS.closed, 'the tools are not served any more'));
  }

  async #connect(): Promise<void> {
    const url = this.#urls[this.#failures % this.#urls.length] ?? '';
    this.#timer = setTimeout(() => this.#lose('no answer in time'), CONNECT_MS);
    try {
      const key = await readToken(this.#options.key);
      if (this.#isStopped) return;
      const inHeader = isNode() && key !== undefined;
      const { openWebSocket = openGlobalWebSocket } = this.#options;
      const socket = openWebSocket(
        `${url.replace(/^http/, 'ws')}/ws/tools`,
        inHeader ? { authorization: `Bearer ${key}` } : {},
      );
      this.#socket = socket;
      this.#hasOpened = false;
      socket.onopen = () => {
        this.#hasOpened = true;
        if (key !== undefined && !inHeader)
          socket.send(JSON.stringify({ id: 0, method: 'connect', params: { token: key } }));
      };
      socket.onmessage = ({ data }: { readonly data: unknown }) => this.#receive(String(data));
      socket.onerror = () => undefined;
      socket.onclose = ({ code }: { readonly code: number }) => void this.#onClose(socket, code, url);
    } catch (error) {
      this.#lose(messageOf(error));
    }
  }

  #receive(text: string): void {
    this.#hasHeard = true;
    const frame = JSON.parse(text) as Frame;
    switch (frame.type) {
      case 'session.ack':
        return this.#serve();
      case 'tools.serving':
        return this.#onServing(frame);
      case 'tools.call':
        return this.#start(frame);
      case 'tools.cancel':
        return this.#running.get(frame.attemptId ?? '')?.controller.abort(String(frame['reason']));
      case 'tools.error':
        return this.#onError(String(frame['message']));
      default:
        return; // a frame of a newer version, or an answer to `ping`
    }
  }

  #serve(): void {
    const tools = Object.entries(this.#tools).map(([name, { schema, handler: _, ...tool }]) => ({
      ...{ name, ...tool },
      ...(schema === undefined ? {} : { inputSchema: schema }),
    }));
    const { concurrency } = this.#options;
    this.#send({ type: 'tools.serve', tools, ...(concurrency === undefined ? {} : { concurrency }) });
  }

  #onServing(frame: Frame): void {
    clearTimeout(this.#timer);
    this.#failures = 0;
    this.#startHeartbeat();
    const refused = frame['refused'] as { name: string; code: string; message: string }[];
    const tools = frame['tools'] as { name: string; version: number }[];
    for (const one of refused) this.#emit({ type: 'refused', ...one });
    this.#emit({ type: 'serving', tools });
    this.#settle.resolve();
  }

  /** Tools that were not registered are announced again on the next connection. */
  #onError(message: string): void {
    this.#emit({ type: 'error', message });
    if (this.#heartbeat === undefined) this.#lose(message);
  }

  #start(frame: Frame): void {
    const { callId = '', attemptId = '' } = frame;
    const name = String(frame['tool']);
    const controller = new AbortController();
    const call: ToolCall = {
      ...{ callId, tool: name, epoch: Number(frame['epoch']) },
      idempotencyKey: String(frame['idempotencyKey']),
      deadline: new Date(Date.now() + Number(frame['timeoutMs'])),
      sessionId: String(frame['sessionId']),
      agentId: frame['agentId'] as string | null,
      signal: controller.signal,
      progress: (message, fraction) =>
        this.#send({
          ...{ type: 'progress', callId, attemptId, message },
          ...(fraction === undefined ? {} : { fraction }),
        }),
    };
    const socket = this.#socket;
    const done = this.#run(name, frame['input'], call, attemptId)
      .then((frames) => {
        // A call of a lost connection was given up: its result would be dropped.
        for (const frame of frames) if (socket === this.#socket) this.#send(frame);
      })
      .finally(() => this.#running.delete(attemptId));
    this.#running.set(attemptId, { controller, done });
  }

  async #run(name: string, input: unknown, call: ToolCall, attemptId: string): Promise<Iterable<object>> {
    const attempt = { callId: call.callId, attemptId };
    try {
      const tool = Object.hasOwn(this.#tools, name) ? this.#tools[name] : undefined;
      if (!tool) throw new Error(`this program has no tool ${name}`);
      return resultFrames(toContent(await tool.handler(input, call)), attempt);
    } catch (error) {
      return [{ type: 'error', message: messageOf(error), ...attempt }];
    }
  }

  /** Finds a connection whose peer is gone without a close. */
  #startHeartbeat(): void {
    clearInterval(this.#heartbeat);
    let silent = 0;
    this.#heartbeat = setInterval(() => {
      silent = this.#hasHeard ? 0 : silent + 1;
      this.#hasHeard = false;
      if (silent >= 3) this.#lose('no answer to a heartbeat');
      else this.#send({ type: 'ping' });
    }, PING_MS);
  }

  async #onClose(socket: WebSocketLike, code: number, url: string): Promise<void> {
    const isFatal = FATAL_CLOSES.has(code);
    const refusal =
      isFatal || this.#hasOpened
        ? null
        : await probeRefusal(url, this.#options.key, (...request) => fetch(...request));
    if (socket !== this.#socket) return;
    if (isFatal) this.#refuse(`the key needs the scope tools:serve (${code})`);
    else if (refusal) this.#refuse(refusal.message);
    else this.#lose(`closed with ${code}`);
  }

  #refuse(reason: string): void {
    const message = `the gateway refuses the key: ${reason}`;
    this.#isStopped = true;
    this.#disconnect();
    this.#emit({ type: 'error', message });
    this.#settle.reject(new ClientError(CLIENT_ERRORS.refused, message));
  }

  #lose(message: string): void {
    const hadSocket = this.#socket !== null;
    this.#disconnect();
    if (this.#isStopped) return;
    if (hadSocket) this.#emit({ type: 'disconnected', message });
    const { firstMs, maxMs } = this.#options.backoff ?? { firstMs: 100, maxMs: 5_000 };
    const delay = Math.min(maxMs, firstMs * 2 ** Math.min(this.#failures++, 16));
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#connect(), delay * (0.5 + Math.random() / 2));
  }

  #disconnect(): void {
    clearTimeout(this.#timer);
    clearInterval(this.#heartbeat);
    this.#heartbeat = undefined;
    const socket = this.#socket;
    this.#socket = null;
    for (const { controller } of this.#running.values()) controller.abort('the connection is lost');
    if (!socket) return;
    socket.onmessage = socket.onclose = null;
    socket.onopen = () => socket.close();
    if (socket.terminate) socket.terminate();
    else socket.close();
  }

  #send(frame: object): void {
    if (this.#socket?.readyState === 1) this.#socket.send(JSON.stringify(frame));
  }

  #emit(event: ServeEvent): void {
    (this.#options.onEvent ?? report)(event);
  }
}

/**
 * Serves tools to the agents of a workspace, over one WebSocket. It connects again after each loss.
 * A call of a lost connection is made again only if its tool is idempotent.
 */
export const serveTools = (
  tools: Readonly<Record<string, ServedTool>>,
  options: ServeToolsOptions,
): ToolServer => new Server(tools, options);
