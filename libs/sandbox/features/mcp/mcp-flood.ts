import { MAX_RESULT_BYTES } from '@antiphon/contracts/sandbox';

/** Maximum number of messages of a server in a second. */
export const MAX_MESSAGES_PER_SECOND = 500;
/** Maximum size of one message of a server, bytes: the largest result with its JSON. */
export const MAX_MESSAGE_BYTES = MAX_RESULT_BYTES + 16 * 1024 * 1024;
/** Maximum size of all messages of all servers that are being read, bytes. */
const MAX_READING_BYTES = 256 * 1024 * 1024;

/** A server that sends more than a client reads. Its connection is closed. */
export class McpFlood extends Error {}

/** Bytes of messages that are not complete yet, of all servers of this process. */
export class ReadingBudget {
  private used = 0;

  constructor(private readonly max = MAX_READING_BYTES) {}

  get usedBytes(): number {
    return this.used;
  }

  /** Throws `McpFlood` if the messages of all servers have no room for more bytes. */
  take(bytes: number): void {
    if (this.used + bytes > this.max)
      throw new McpFlood(`messages of servers take over ${this.max} bytes of memory`);
    this.used += bytes;
  }

  release(bytes: number): void {
    this.used -= bytes;
  }
}

/** The budget of this process. */
export const reading = new ReadingBudget();
