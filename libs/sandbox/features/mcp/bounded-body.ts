import type { ReadableStream as Body } from 'node:stream/web';
import { MAX_MESSAGES_PER_SECOND, MAX_MESSAGE_BYTES, McpFlood } from './mcp-flood.js';
import type { ReadingBudget } from './mcp-flood.js';

/** Maximum number of events of one stream. A client connects to a longer one again. */
const MAX_STREAM_EVENTS = 4 * MAX_MESSAGES_PER_SECOND;
const NEWLINE = 0x0a;

/** Counts bytes and events of a response. Its methods throw `McpFlood` above the limits. */
class BodyMeter {
  private bytes = 0;
  private events = 0;
  private last = 0;
  /** Bytes that the budget counts: the whole of a response, or the last event of a stream. */
  private held = 0;

  constructor(
    private readonly isStream: boolean,
    private readonly budget: ReadingBudget,
  ) {}

  count(chunk: Uint8Array): void {
    this.bytes += chunk.length;
    if (this.bytes > MAX_MESSAGE_BYTES) throw new McpFlood(`a response has over ${MAX_MESSAGE_BYTES} bytes`);
    const rest = this.isStream ? this.countEvents(chunk) : chunk.length;
    this.budget.take(rest);
    this.held += rest;
  }

  end(): void {
    this.budget.release(this.held);
    this.held = 0;
  }

  /** Returns the number of bytes after the last complete event. */
  private countEvents(chunk: Uint8Array): number {
    let rest = chunk.length;
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, at + 1)) {
      if ((at === 0 ? this.last : chunk[at - 1]) !== NEWLINE) continue;
      this.events += 1;
      rest = chunk.length - at - 1;
      this.end();
    }
    this.last = chunk.at(-1) ?? this.last;
    if (this.events > MAX_STREAM_EVENTS) throw new McpFlood(`a stream has over ${MAX_STREAM_EVENTS} events`);
    return rest;
  }
}

/** Returns a body that fails above the limits of a response, and of all that are being read. */
export const boundBody = (
  body: Body<Uint8Array>,
  isStream: boolean,
  budget: ReadingBudget,
): Body<Uint8Array> => {
  const reader = body.getReader();
  const meter = new BodyMeter(isStream, budget);
  const fail = async (error: unknown): Promise<never> => {
    meter.end();
    await reader.cancel(error).catch(() => undefined);
    throw error;
  };
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      try {
        const { done, value } = await reader.read();
        if (done) {
          meter.end();
          return controller.close();
        }
        meter.count(value);
        controller.enqueue(value);
      } catch (error) {
        await fail(error);
      }
    },
    cancel: async (reason) => {
      meter.end();
      await reader.cancel(reason);
    },
  }) as Body<Uint8Array>;
};
