import { EventStreamCodec } from '@smithy/core/event-streams';
import { brokenAnswer } from './failures.js';
import type { ServerEvent } from './response-reader.js';

/** Media type of a stream of binary messages. */
export const AMAZON_EVENTS = 'application/vnd.amazon.eventstream';

/** Maximum size of one message, bytes. The vendor's own limit is 16 MiB. */
const MAX_MESSAGE = 2 * 1024 * 1024;
/** Smallest message: two lengths and two checksums. */
const MIN_MESSAGE = 16;
const LENGTH_BYTES = 4;

const toText = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');
const codec = new EventStreamCodec(toText, (text) => Buffer.from(text, 'utf8'));

const decode = (bytes: Uint8Array): ServerEvent => {
  try {
    const { headers, body } = codec.decode(bytes);
    const header = (name: string): string => String(headers[name]?.value ?? '');
    const kind = header(':message-type');
    if (kind === 'event') return { event: header(':event-type'), data: toText(body) };
    // An error has its text in a header, and an exception in its body.
    if (kind === 'exception') return { event: `!${header(':exception-type')}`, data: toText(body) };
    return {
      event: `!${header(':error-code')}`,
      data: JSON.stringify({ message: header(':error-message') }),
    };
  } catch (cause) {
    throw brokenAnswer('message_damaged', { cause: new Error(String(cause)) });
  }
};

/**
 * Creates a parser for the binary messages of an event stream of AWS. The name of an exception
 * begins with `!`.
 * https://docs.aws.amazon.com/transcribe/latest/dg/streaming-setting-up.html#streaming-event-stream
 */
export const createAmazonParser = (onEvent: (event: ServerEvent) => void): ((bytes: Uint8Array) => void) => {
  let rest: Buffer = Buffer.alloc(0);
  return (bytes) => {
    rest = rest.length === 0 ? Buffer.from(bytes) : Buffer.concat([rest, bytes]);
    while (rest.length >= LENGTH_BYTES) {
      const length = rest.readUInt32BE(0);
      if (length < MIN_MESSAGE || length > MAX_MESSAGE)
        throw brokenAnswer('message_length', { detail: length, retryable: false });
      if (rest.length < length) return;
      const message = rest.subarray(0, length);
      rest = rest.subarray(length);
      onEvent(decode(message));
    }
  };
};
