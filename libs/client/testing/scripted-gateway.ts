import { createClient, type Client, type ClientOptions, type WebSocketLike } from '../index.js';

interface SentRequest {
  readonly id: number;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** One connection of the client under test. */
export class ScriptedSocket implements WebSocketLike {
  readonly readyState = 1;
  readonly requests: SentRequest[] = [];
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: never) => void) | null = null;
  onerror: ((event: never) => void) | null = null;
  onclose: ((event: never) => void) | null = null;
  isClosed = false;

  constructor(
    readonly url: string,
    readonly headers: Readonly<Record<string, string>>,
    private readonly onRequest: () => void,
  ) {}

  send(text: string): void {
    this.requests.push(JSON.parse(text) as SentRequest);
    this.onRequest();
  }

  close(): void {
    this.isClosed = true;
  }

  open(): void {
    this.onopen?.({} as never);
  }

  accept(): void {
    this.open();
    this.message({ type: 'session.ack', protocol: 1 });
  }

  message(message: unknown): void {
    this.onmessage?.({ data: JSON.stringify(message) } as never);
  }

  frame(id: number, event: string, data: unknown, offset: number): void {
    this.message({ id, event, data, offset });
  }

  drop(code = 1006): void {
    this.onclose?.({ code } as never);
  }
}

/** A client whose connections the spec answers. */
export class ScriptedGateway {
  readonly sockets: ScriptedSocket[] = [];
  readonly client: Client;
  #wake: () => void = () => undefined;

  constructor(options: Partial<ClientOptions> = {}) {
    this.client = createClient({
      url: ['http://one', 'http://two'],
      backoff: { firstMs: 1, maxMs: 2 },
      fetch: () => Promise.reject(new Error('no network')),
      ...options,
      openWebSocket: (url, headers) => {
        const socket = new ScriptedSocket(url, headers, () => this.#wake());
        this.sockets.push(socket);
        this.#wake();
        return socket;
      },
    });
  }

  /** Resolves with connection number `index`, from 0, once the client opens it. */
  async socket(index: number): Promise<ScriptedSocket> {
    await this.#until(() => this.sockets.length > index);
    return this.sockets[index] as ScriptedSocket;
  }

  /** Accepts connection number `index`. Resolves with it and its first `count` requests. */
  async accepted(index: number, count = 1): Promise<{ socket: ScriptedSocket; requests: SentRequest[] }> {
    const socket = await this.socket(index);
    await this.#until(() => socket.onmessage !== null);
    socket.accept();
    await this.#until(() => socket.requests.length >= count);
    return { socket, requests: socket.requests };
  }

  async #until(isReached: () => boolean): Promise<void> {
    while (!isReached()) {
      const woken = new Promise<void>((resolve) => (this.#wake = resolve));
      await Promise.race([woken, new Promise((resolve) => setTimeout(resolve, 5))]);
    }
  }
}
