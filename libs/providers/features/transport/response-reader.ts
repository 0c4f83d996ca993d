import { AsyncResource } from 'node:async_hooks';
import type { ModelFailure } from '@antiphon/providers-domain';
import { findJsonExcess, MAX_JSON_VALUES } from '@antiphon/kernel';
import { createParser } from 'eventsource-parser';
import { errors, type Dispatcher } from 'undici';
import { unreachable } from './connection-failures.js';
import { createBodyDecoder } from './decode-body.js';
import type { BodyDecoder } from './decode-body.js';
import { codesOf, messageOf, parseJson, toOneLine, type ResponseHeaders } from './error-text.js';
import { brokenAnswer, cutAnswer, refusalFailure, wrongType } from './failures.js';
import type { CallTarget } from './failures.js';
import type { CallEnvironment, ProviderCall } from './provider-call.js';
import { beginsEvents, hasError, isAnswer, isJson, mediaTypeOf } from './whole-response.js';
import { parseResponse, parseWhole } from './whole-response.js';

/**
 * Maximum length of one event of a stream, UTF-16 units. JSON is parsed at once, on the loop that
 * all calls share.
 */
const MAX_EVENT = 1024 * 1024;

/** One server-sent event, its data lines joined. */
export interface ServerEvent {
  /** Undefined where the stream does not name it. */
  readonly event?: string | undefined;
  readonly data: string;
}

/** Collects the events of a stream into an answer. */
export interface EventReader {
  /** Throws if the event makes the answer invalid. */
  read(event: ServerEvent): void;
  /** Reads an answer that arrives whole, from a server that does not stream. Throws if it is none. */
  readWhole(value: unknown): void;
  /** Returns true once the model has given its reason to stop. */
  isComplete(): boolean;
  /** Media type of the stream, and its parser. Default: server-sent events. */
  readonly media?: string;
  readonly createParser?: typeof createEventParser;
}

/**
 * Creates a parser for a stream's bytes. It calls `onEvent` for each event that the bytes complete,
 * without a wait between events: a vendor's SDK needs several promises for each of them.
 */
export const createEventParser = (onEvent: (event: ServerEvent) => void): ((bytes: Uint8Array) => void) => {
  const decoder = new TextDecoder();
  const parser = createParser({ onEvent });
  return (bytes) => parser.feed(decoder.decode(bytes, { stream: true }));
};

/** Details of a failure that no retry changes. */
const FINAL = { retryable: false };
const END_OF_EVENT = Buffer.from('\n\n');

/** Handling of a response's body, chosen by its head. */
interface BodyHandling {
  readonly limit: number;
  /** True if a body over the limit, or one that breaks off, is used as far as it arrived. */
  readonly allowsPartial: boolean;
  readonly read: (chunk: Buffer) => void;
  /** Returns the result, or throws the failure that the body means. */
  readonly finish: () => unknown;
  /** True if the content type may be wrong, and the body a stream of events. */
  readonly mayBeEvents?: true;
}

/**
 * Reads one response under the timeouts and limits of its call. The methods run within the read of
 * the socket. Each failure is reported to the call and rejects `response`.
 */
export class ResponseReader extends AsyncResource implements Dispatcher.DispatchHandler {
  /** Resolves with the parsed JSON of a whole response, with undefined at the end of a stream. */
  readonly response: Promise<unknown>;
  private readonly settlement = Promise.withResolvers<unknown>();
  private controller: Dispatcher.DispatchController | null = null;
  private body: BodyHandling | null = null;
  /** Decodes a compressed body; null for a plain one. */
  private decoder: BodyDecoder | null = null;
  private size = 0;
  /** Size of a compressed body as it arrived. */
  private encodedSize = 0;
  private isSettled = false;
  /**
   * True once the connection needs no abort: the response is complete, or the connection failed.
   */
  private isEnded = false;

  /** @param events null for a response in one piece */
  constructor(
    private readonly call: ProviderCall,
    private readonly events: EventReader | null,
    private readonly target: CallTarget,
    private readonly environment: CallEnvironment,
  ) {
    super('PROVIDER_RESPONSE');
    this.response = this.settlement.promise;
    call.onStop(() => this.onStop());
  }

  /** Called with an established connection, before the first byte is written. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.isSettled) this.abort();
    else this.call.connected();
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: ResponseHeaders,
  ): void {
    if (status < 200 || this.isSettled) return;
    const encoding = String(headers['content-encoding'] ?? '');
    const decoder = createBodyDecoder(encoding, {
      onData: (chunk) => this.consume(chunk),
      onEnd: () => this.finish(),
      onError: (error) => this.onDecodeError(encoding, error),
    });
    this.body = status > 299 ? this.refusalBody(status, headers) : this.bodyOf(mediaTypeOf(headers), headers);
    if (decoder !== 'unknown') this.decoder = decoder;
    // The status of a refusal says enough without its body.
    else if (status > 299) this.finish();
    else this.reject(brokenAnswer('unknown_encoding', { ...FINAL, detail: toOneLine(encoding) }));
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const { body, decoder } = this;
    if (this.isSettled || body === null) return;
    this.call.received();
    if (decoder === null) {
      this.consume(chunk);
      return;
    }
    this.encodedSize += chunk.length;
    if (this.encodedSize <= body.limit) decoder.write(chunk);
    else this.call.fail(brokenAnswer('too_many_bytes', { detail: body.limit }));
  }

  /** Reads a piece of the body as its server wrote it. */
  private consume(chunk: Buffer): void {
    const { events } = this;
    if (this.size === 0 && events !== null && this.body?.mayBeEvents && beginsEvents(chunk))
      this.body = this.streamBody(events);
    const { body } = this;
    if (this.isSettled || body === null) return;
    this.size += chunk.length;
    if (this.size > body.limit && !body.allowsPartial) {
      this.call.fail(brokenAnswer('too_many_bytes', { ...FINAL, detail: body.limit }));
      return;
    }
    try {
      // Events continue the call's asynchronous context, which the socket's read does not have.
      this.runInAsyncScope(body.read, undefined, chunk);
    } catch (error) {
      this.reject(error);
      return;
    }
    if (this.size > body.limit) this.finish();
  }

  onResponseEnd(): void {
    this.isEnded = true;
    // undici releases the connection in the next immediate, which it queues after this method. A
    // caller that continued earlier would open a second connection for its next call.
    process.nextTick(() => setImmediate(() => (this.decoder === null ? this.finish() : this.decoder.end())));
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.isEnded = true;
    if (this.isSettled) return;
    if (this.decoder !== null && this.body?.allowsPartial === true) this.decoder.end();
    else if (this.body === null) this.call.fail(this.connectionFailure(error));
    else if (this.call.isFinishing) this.finish();
    else this.call.fail(cutAnswer(error));
  }

  private onDecodeError(encoding: string, cause: Error): void {
    if (this.call.isFinishing) this.finish();
    else this.call.fail(brokenAnswer('invalid_encoding', { cause, detail: toOneLine(encoding) }));
  }

  private bodyOf(type: string, headers: ResponseHeaders): BodyHandling {
    const { events, call } = this;
    if (events !== null && ['text/event-stream', '', events.media].includes(type))
      return this.streamBody(events);
    if (events === null && (isJson(type) || type === '')) {
      const finish = (text: string): unknown => parseResponse(text.replace(/^\uFEFF/, ''));
      return this.collectBody({ limit: call.limits.maxAnswerBytes, allowsPartial: false, finish });
    }
    const finish = (text: string): void => this.finishOtherType(type, headers, text);
    const isWhole = isJson(type);
    const limit = isWhole ? call.limits.maxAnswerBytes : call.limits.maxErrorBytes;
    return { ...this.collectBody({ limit, allowsPartial: !isWhole, finish }), mayBeEvents: true };
  }

  private streamBody(events: EventReader): BodyHandling {
    let isEnded = false;
    const read = (events.createParser ?? createEventParser)((event) => {
      // The connection broke within an event after the answer.
      if (isEnded && events.isComplete() && parseJson(event.data) === undefined) return;
      if (event.data.length > MAX_EVENT)
        throw brokenAnswer('event_too_long', { ...FINAL, detail: MAX_EVENT });
      // A shorter event cannot have that many values.
      if (event.data.length > MAX_JSON_VALUES && findJsonExcess(event.data) !== null)
        throw brokenAnswer('too_complex');
      events.read(event);
      if (events.isComplete()) this.call.finishing();
    });
    return {
      limit: this.call.limits.maxAnswerBytes,
      allowsPartial: false,
      read,
      // A server may close the connection without the empty line that ends its last event.
      finish: () => {
        isEnded = true;
        read(END_OF_EVENT);
      },
    };
  }

  private refusalBody(status: number, headers: ResponseHeaders): BodyHandling {
    const { redact, now } = this.environment;
    const finish = (body: string): never => {
      throw refusalFailure({ status, headers, body }, this.target, redact, now());
    };
    return this.collectBody({ limit: this.call.limits.maxErrorBytes, allowsPartial: true, finish });
  }

  private collectBody({
    limit,
    allowsPartial,
    finish,
  }: Pick<BodyHandling, 'limit' | 'allowsPartial'> & {
    readonly finish: (text: string) => unknown;
  }): BodyHandling {
    const chunks: Buffer[] = [];
    return {
      limit,
      allowsPartial,
      read: (chunk) => void chunks.push(chunk),
      finish: () => finish(Buffer.concat(chunks).subarray(0, limit).toString('utf8')),
    };
  }

  /**
   * Finishes a 2xx with another content type: an answer that is not streamed. Throws for an error
   * behind a 200, and for a page of another server.
   */
  private finishOtherType(type: string, headers: ResponseHeaders, text: string): void {
    const { events } = this;
    const json = events !== null && isJson(type) ? parseWhole(text) : parseJson(text);
    if (events !== null && isAnswer(json)) events.readWhole(json);
    else this.throwWrongType(type, headers, json);
  }

  private throwWrongType(type: string, headers: ResponseHeaders, json: unknown): never {
    if (!hasError(json)) {
      const expected = this.events === null ? 'application/json' : 'text/event-stream';
      throw wrongType({ type: toOneLine(type), expected, endpoint: this.target.endpoint });
    }
    const status = Number(codesOf(json).find((code) => /^[45]\d\d$/.test(code)) ?? 500);
    const { redact, now } = this.environment;
    throw refusalFailure(
      { status, headers, body: JSON.stringify({ error: messageOf(json) }) },
      this.target,
      redact,
      now(),
    );
  }

  private connectionFailure(error: Error): ModelFailure {
    if (error instanceof errors.ConnectTimeoutError)
      return unreachable(false, this.target, Object.assign(error, { code: 'ETIMEDOUT' }));
    if (error instanceof errors.HTTPParserError || error instanceof errors.HeadersOverflowError)
      // undici's error holds the bytes that arrived, which may echo a key.
      return brokenAnswer('not_http', {
        cause: new Error(error.message),
        retryable: false,
      });
    return unreachable(this.call.dispatched, this.target, error);
  }

  /** Settles when the call stops before the response has ended. */
  private onStop(): void {
    const { failure } = this.call;
    if (failure === null || this.body?.allowsPartial === true) this.finish();
    else this.reject(failure);
  }

  private finish(): void {
    if (this.isSettled) return;
    try {
      this.settlement.resolve(this.body?.finish());
      this.isSettled = true;
    } catch (error) {
      this.reject(error);
    }
    this.abort();
  }

  private reject(error: unknown): void {
    if (!this.isSettled) this.settlement.reject(error);
    this.isSettled = true;
    this.abort();
  }

  /**
   * Closes the connection, unless the whole response has been read: then it serves the next call.
   */
  private abort(): void {
    this.decoder?.destroy();
    if (this.isEnded || this.controller === null) return;
    this.isEnded = true;
    this.controller.abort(new Error('the call is over'));
  }
}
