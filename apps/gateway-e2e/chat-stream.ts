import { sleep } from '@antiphon/kernel';

/** A server-sent event of a chat. */
export interface ChatEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Parses one block of a stream. */
export const parseEvent = (block: string): ChatEvent | undefined => {
  const fields = new Map(
    block.split('\n').flatMap((line): [string, string][] => {
      const colon = line.indexOf(': ');
      return colon > 0 ? [[line.slice(0, colon), line.slice(colon + 2)]] : [];
    }),
  );
  const data = fields.get('data');
  if (data === undefined) return undefined;
  return {
    id: fields.get('id'),
    event: fields.get('event') ?? '',
    data: JSON.parse(data) as ChatEvent['data'],
  };
};

/** Reader of the events of one chat, as a browser's `EventSource` is. */
export class ChatStream {
  readonly events: ChatEvent[] = [];
  isEnded = false;
  readonly #ended = Promise.withResolvers<void>();
  readonly #controller = new AbortController();

  /** Opens a stream. Rejects with the problem of a refused one. */
  static async open(
    url: string,
    { lastEventId, token }: { readonly lastEventId?: string | undefined; readonly token?: string } = {},
  ): Promise<ChatStream> {
    const stream = new ChatStream();
    const headers = {
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
    const response = await fetch(url, { headers, signal: stream.#controller.signal });
    if (!response.ok || !response.body) throw new Error(`${response.status} ${await response.text()}`);
    void stream
      .#read(response.body)
      .catch(() => undefined)
      .finally(() => {
        stream.isEnded = true;
        stream.#ended.resolve();
      });
    return stream;
  }

  get lastId(): string | undefined {
    return this.events.findLast(({ id }) => id !== undefined)?.id;
  }

  /** Waits for an event. */
  async waitFor(
    what: string,
    isFound: (event: ChatEvent) => boolean,
    timeoutMs = 15_000,
  ): Promise<ChatEvent> {
    for (const end = Date.now() + timeoutMs; Date.now() < end; await sleep(5)) {
      const found = this.events.find(isFound);
      if (found) return found;
    }
    throw new Error(`no ${what} in ${timeoutMs} ms: ${JSON.stringify(this.events.slice(-10))}`);
  }

  /** Waits until there are this many events, the stream ends, or nothing arrives for long. */
  async waitForCount(count: number, timeoutMs = 15_000): Promise<void> {
    for (const end = Date.now() + timeoutMs; Date.now() < end; await sleep(1))
      if (this.events.length >= count || this.isEnded) return;
  }

  /** Waits until this many turns have ended. */
  async done(count = 1): Promise<ChatEvent> {
    let seen = 0;
    let found = 0;
    return this.waitFor(`${count}. done`, () => {
      // Each event is looked at once: thousands would keep this process from reading on.
      for (; seen < this.events.length; seen++) if (this.events[seen]?.event === 'done') found++;
      return found >= count;
    });
  }

  /** Waits until the gateway ends the stream. */
  waitForEnd(): Promise<void> {
    return this.#ended.promise;
  }

  close(): void {
    this.#controller.abort();
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let rest = '';
    for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
      const blocks = (rest + decoder.decode(chunk, { stream: true })).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const event = parseEvent(block);
        if (event) this.events.push(event);
      }
    }
  }
}
