import { BufferedStream, type BufferLimits } from './buffered-stream.js';
import type { GatewayConnection } from './connection.js';
import type { Incoming } from './gateway-socket.js';
import type { LogEvent, MethodParams } from './reference.js';

/** Selects events. All given fields must match. */
export type EventFilter = NonNullable<MethodParams<'events.subscribe'>['filter']>;

export interface EventStreamOptions {
  readonly filter?: EventFilter | undefined;
  /** Cursor of the last event that was handled, or `start`. Default: events from now on. */
  readonly from?: string | undefined;
}

/** An event with the cursor that continues after it. */
export interface EventItem {
  readonly event: LogEvent;
  readonly cursor: string;
}

/** Ends a subscription at the gateway, by the id of its request. */
type Unsubscribe = (id: number) => void;

/** Events of the log, each once and in order, through any number of lost connections. */
export class EventStream extends BufferedStream<EventItem> {
  readonly #options: EventStreamOptions;
  readonly #unsubscribe: Unsubscribe;
  #cursor: string | undefined;
  #lastPosition = 0;
  #head: number | null = null;
  #isStarted = false;
  #isLive = false;
  #resolveReady: () => void = () => undefined;
  /** Resolves once the gateway has subscribed: every event from then on arrives. */
  readonly ready = new Promise<void>((resolve) => (this.#resolveReady = resolve));

  constructor(
    connection: GatewayConnection,
    limits: BufferLimits,
    options: EventStreamOptions,
    unsubscribe: Unsubscribe,
  ) {
    super(connection, limits);
    this.#options = options;
    this.#cursor = options.from;
    this.#unsubscribe = unsubscribe;
  }

  /** Cursor after the last event that arrived. A later subscription continues there. */
  get cursor(): string | undefined {
    return this.#cursor;
  }

  /** Position of the newest event of the log when it was subscribed; null if the gateway told none. */
  get head(): number | null {
    return this.#head;
  }

  /** True once all past events have arrived. */
  get isLive(): boolean {
    return this.#isLive;
  }

  override request() {
    const { filter } = this.#options;
    const params: MethodParams<'events.subscribe'> = { filter, from: this.#cursor };
    return { method: 'events.subscribe', params };
  }

  protected override isRepeat(): boolean {
    return this.#isStarted;
  }

  protected override onAnswer({ event, data, cursor }: Incoming, length: number): void {
    if (event === undefined || cursor === undefined) return;
    if (event === 'subscribed') this.#isStarted = true;
    if (event === 'subscribed') {
      this.#head = (data as { readonly head?: number }).head ?? null;
      this.#resolveReady();
    }
    if (event === 'live') this.#isLive = true;
    this.#cursor = cursor;
    if (event !== 'log') return;
    const logged = data as LogEvent;
    if (logged.position <= this.#lastPosition) return;
    this.#lastPosition = logged.position;
    this.push({ event: logged, cursor }, length);
  }

  protected override onEnd(): void {
    this.#resolveReady();
  }

  protected override onDetach(id: number | undefined): void {
    if (id !== undefined) this.#unsubscribe(id);
  }
}
