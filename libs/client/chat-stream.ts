import type { ConnectionOptions } from './connection.js';
import { CLIENT_ERRORS, ClientError, errorOfResponse } from './errors.js';
import { readToken } from './web-socket.js';

export interface ChatStreamOptions {
  /** Default: `default`. */
  readonly workspace?: string;
  /** Id or name of the chat. */
  readonly chat: string;
  /** Id of the last event that was handled. Default: all events of the chat. */
  readonly lastEventId?: string | undefined;
  /** Where to begin without an id: with all events, or with what follows. Default: `start`. */
  readonly from?: 'start' | 'end';
}

/** Event of a chat, such as `text`, `call`, `observation`, `approval` or `done`. */
export interface ChatEvent {
  /** Absent for events that are not in the log, such as an approval that is sent again. */
  readonly id: string | undefined;
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

type StreamConnection = Pick<
  ConnectionOptions,
  'urls' | 'token' | 'fetch' | 'firstDelayMs' | 'maxDelayMs' | 'giveUpAfterMs'
>;

/** Statuses after which the same request may succeed. */
const TRANSIENT: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** Returns the event of a block of lines; undefined for a comment. */
export const parseChatEvent = (block: string): ChatEvent | undefined => {
  let id: string | undefined;
  let event = 'message';
  let data = '';
  for (const line of block.split('\n')) {
    if (line.startsWith('id: ')) id = line.slice(4);
    else if (line.startsWith('event: ')) event = line.slice(7);
    else if (line.startsWith('data: ')) data += line.slice(6);
  }
  return data === '' ? undefined : { id, event, data: JSON.parse(data) as ChatEvent['data'] };
};

/** Yields the events of a response's body. */
async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ChatEvent> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const event = parseChatEvent(block);
      if (event) yield event;
    }
  }
}

/**
 * Events of one chat, each once and in order. It resumes after a lost connection, also at another
 * gateway, until it is closed.
 */
export class ChatStream implements AsyncIterable<ChatEvent> {
  readonly #connection: StreamConnection;
  readonly #path: string;
  readonly #query: string;
  readonly #closing = new AbortController();
  #lastEventId: string | undefined;
  #tries = 0;
  #urlIndex = 0;
  /** Time of the loss of the connection; null while there is one. */
  #lostAt: number | null = null;

  constructor(connection: StreamConnection, options: ChatStreamOptions) {
    const { workspace = 'default', chat, lastEventId, from = 'start' } = options;
    this.#query = from === 'end' ? '?from=end' : '';
    this.#connection = connection;
    this.#lastEventId = lastEventId;
    this.#path = `/api/v1/workspaces/${encodeURIComponent(workspace)}/chats/${encodeURIComponent(chat)}/events`;
  }

  /** Id to resume from: the one of the last event that was handled. */
  get lastEventId(): string | undefined {
    return this.#lastEventId;
  }

  /** Ends the stream. The turn continues. */
  close(): void {
    this.#closing.abort();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ChatEvent> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        yield* this.#readConnection();
      } catch (error) {
        if (signal.aborted) return;
        this.#lostAt ??= performance.now();
        if (this.#isFinal(error, this.#lostAt)) throw error;
      }
      this.#lostAt ??= performance.now();
      await this.#pause();
    }
  }

  /** Yields the events of one connection. */
  async *#readConnection(): AsyncGenerator<ChatEvent> {
    for await (const event of readEvents(await this.#open())) {
      this.#tries = 0;
      this.#lostAt = null;
      if (event.event !== 'behind') yield event;
      this.#lastEventId = event.id ?? this.#lastEventId;
    }
  }

  #isFinal(error: unknown, lostAt: number): boolean {
    if (error instanceof ClientError && !TRANSIENT.has(error.status ?? 503)) return true;
    return performance.now() - lostAt > this.#connection.giveUpAfterMs;
  }

  async #open(): Promise<ReadableStream<Uint8Array>> {
    const { urls, token, fetch: send } = this.#connection;
    const url = urls[this.#urlIndex % urls.length] ?? '';
    const given = await readToken(token);
    const headers = {
      accept: 'text/event-stream',
      ...(given === undefined ? {} : { authorization: `Bearer ${given}` }),
      ...(this.#lastEventId === undefined ? {} : { 'last-event-id': this.#lastEventId }),
    };
    const query = this.#lastEventId === undefined ? this.#query : '';
    const response = await send(url + this.#path + query, { headers, signal: this.#closing.signal }).catch(
      (cause: unknown) => {
        this.#urlIndex++;
        throw new ClientError(CLIENT_ERRORS.unreachable, `no gateway answers at ${url}`, { cause });
      },
    );
    if (!response.ok)
      throw errorOfResponse(response.status, await response.text(), response.headers.get('retry-after'));
    if (!response.body) throw new ClientError(CLIENT_ERRORS.refused, 'the response has no body');
    return response.body;
  }

  async #pause(): Promise<void> {
    const { firstDelayMs, maxDelayMs } = this.#connection;
    const delayMs = Math.min(maxDelayMs, firstDelayMs * 2 ** this.#tries++);
    const { signal } = this.#closing;
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, delayMs);
      signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
    });
  }
}
