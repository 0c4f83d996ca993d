import { BufferedStream, type BufferLimits } from './buffered-stream.js';
import type { GatewayConnection } from './connection.js';
import type { Incoming } from './gateway-socket.js';
import { CLIENT_ERRORS, ClientError } from './errors.js';
import type { AcceptedTurn, MethodParams, PendingApproval, TurnFrame } from './reference.js';

/** Text of an answer, from which a `restart` removes what a lost attempt had sent. */
export class AnswerText {
  #pieces: { readonly offset: number; readonly text: string }[] = [];

  add({ event, data, offset }: TurnFrame): void {
    if (event === 'text') this.#pieces.push({ offset, text: data });
    if (event === 'restart') this.#pieces = this.#pieces.filter((piece) => piece.offset < data.offset);
  }

  toString(): string {
    return this.#pieces.map(({ text }) => text).join('');
  }
}

const toFrame = ({ event, data, offset }: Incoming): TurnFrame => ({ event, data, offset }) as TurnFrame;

/** All frames of a session after an offset, of this turn and later ones. It does not end by itself. */
export class SessionStream extends BufferedStream<TurnFrame> {
  readonly #sessionId: string;
  #lastOffset: number;
  #isStarted = false;

  constructor(connection: GatewayConnection, limits: BufferLimits, sessionId: string, after: number) {
    super(connection, limits);
    this.#sessionId = sessionId;
    this.#lastOffset = after;
  }

  /** Offset of the last frame that arrived. */
  get lastOffset(): number {
    return this.#lastOffset;
  }

  override request() {
    const params: MethodParams<'session.resume'> = { sessionId: this.#sessionId, after: this.#lastOffset };
    return { method: 'session.resume', params };
  }

  protected override isRepeat(): boolean {
    return this.#isStarted;
  }

  protected override onAnswer(message: Incoming, length: number): void {
    const frame = toFrame(message);
    this.#isStarted = true;
    if (frame.event === 'progress') return this.push(frame, length);
    if (frame.offset <= this.#lastOffset) return;
    this.#lastOffset = frame.offset;
    this.push(frame, length);
  }
}

/** A message to send, by address or to a session. Its key makes a repeated request join the first. */
export type TurnRequest =
  | {
      readonly method: 'chat.send';
      readonly params: MethodParams<'chat.send'> & { readonly idempotencyKey: string };
    }
  | {
      readonly method: 'session.send';
      readonly params: MethodParams<'session.send'> & { readonly idempotencyKey: string };
    };

export interface TurnOptions {
  /** Called with each tool call that waits for a decision. Answer it by `client.approvals.answer`. */
  readonly onApproval?: ((approval: PendingApproval) => void) | undefined;
  /** Stops reading when it is aborted; the turn continues. */
  readonly signal?: AbortSignal | undefined;
}

type Cancel = (turn: AcceptedTurn) => Promise<unknown>;

/**
 * One message and the frames of its turn, up to one `done`. It has one reader: a `for await`, or
 * `text()`.
 */
export class TurnStream extends BufferedStream<TurnFrame> {
  readonly #request: TurnRequest;
  readonly #options: TurnOptions;
  readonly #cancel: Cancel;
  readonly #text = new AnswerText();
  /** Resolves once the turn is committed: it will end with `done`, even after a crash. */
  readonly accepted: Promise<AcceptedTurn>;
  #settleAccepted: (error: ClientError | null) => void = () => undefined;
  #turn: AcceptedTurn | null = null;
  /** Offset of the last frame that counts; -1 before the first. */
  #lastOffset = -1;
  #sent = 0;
  #result: unknown;
  #failure: ClientError | null = null;
  #status: string | null = null;
  #isRead = false;

  constructor(
    connection: GatewayConnection,
    limits: BufferLimits,
    request: TurnRequest,
    options: TurnOptions,
    cancel: Cancel,
  ) {
    super(connection, limits);
    this.#request = request;
    this.#options = options;
    this.#cancel = cancel;
    this.accepted = new Promise((resolve, reject) => {
      this.#settleAccepted = (error) => (this.#turn ? resolve(this.#turn) : reject(error ?? detachedError()));
    });
    // A reader of the frames gets the same error.
    this.accepted.catch(() => undefined);
    options.signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Result instead of frames: the new session, for the content `/new`. */
  get result(): unknown {
    return this.#result;
  }

  override request() {
    this.#sent++;
    // `accepted` of a queued turn has no offset of its own, so that the key joins the turn again.
    if (!this.#turn || this.#lastOffset < 0) return this.#request;
    const { sessionId, turnId } = this.#turn;
    const params: MethodParams<'session.resume'> = { sessionId, turnId, after: this.#lastOffset };
    return { method: 'session.resume', params };
  }

  override next(): Promise<IteratorResult<TurnFrame, undefined>> {
    this.#isRead = true;
    return super.next();
  }

  /**
   * Returns the whole answer once the turn has completed, without text that a `restart` voided.
   * Rejects if the turn fails or is cancelled.
   */
  async text(): Promise<string> {
    if (this.#isRead && this.#status === null)
      throw new ClientError(
        CLIENT_ERRORS.refused,
        'read the frames to their end first: they have one reader',
      );
    while (!(await this.next()).done);
    if (this.#status === 'completed') return this.#text.toString();
    if (this.#failure) throw this.#failure;
    throw endErrorOf(this.#status);
  }

  /** Cancels the turn once it is accepted. Its frames end with `done`. */
  async cancel(): Promise<void> {
    await this.#cancel(await this.accepted);
  }

  protected override isRepeat(): boolean {
    return this.#turn !== null || this.#sent > 1;
  }

  protected override onAnswer(message: Incoming, length: number): void {
    if (message.event === undefined) {
      this.#result = message.result;
      return this.finish();
    }
    const frame = toFrame(message);
    if (frame.event === 'accepted') return this.#accept(frame, length);
    // It has the offset of the frame before it, because no log has it.
    if (frame.event === 'progress') return this.push(frame, length);
    if (frame.offset <= this.#lastOffset) return;
    this.#lastOffset = frame.offset;
    if (frame.event === 'approval') this.#options.onApproval?.(frame.data);
    this.push(frame, length);
    if (frame.event === 'done') this.finish();
  }

  protected override onRead(frame: TurnFrame): void {
    this.#text.add(frame);
    if (frame.event === 'error') this.#failure = new ClientError(frame.data.code, frame.data.message);
    if (frame.event === 'done') this.#status = frame.data.status;
  }

  protected override onEnd(error: ClientError | null): void {
    this.#options.signal?.removeEventListener('abort', this.#onAbort);
    this.#settleAccepted(error);
  }

  /** A request that was sent again gets `accepted` again; the reader gets it once. */
  #accept(frame: TurnFrame & { readonly event: 'accepted' }, length: number): void {
    if (this.#turn) return;
    this.#turn = frame.data;
    this.#settleAccepted(null);
    this.push(frame, length);
  }

  readonly #onAbort = (): void => this.detach();
}

const endErrorOf = (status: string | null): ClientError => {
  if (status === 'cancelled') return new ClientError(CLIENT_ERRORS.cancelled, 'the turn was cancelled');
  if (status === 'failed') return new ClientError(CLIENT_ERRORS.failed, 'the turn failed');
  return detachedError();
};

const detachedError = (): ClientError =>
  new ClientError(CLIENT_ERRORS.closed, 'the stream was left before its end; the turn continues');
