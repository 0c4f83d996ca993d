import { readHeldResult, releaseHeldResult } from '@antiphon/contracts/sandbox';
import type { ToolReply } from '@antiphon/contracts/sandbox';
import type { BlobStore } from '@antiphon/database';
import { isAppError, transient } from '@antiphon/kernel';
import { fetchParts, requestWithRetry } from '@antiphon/messaging';
import type { RequestClient } from '@antiphon/messaging';

export interface LargeResultsDeps {
  readonly requests: RequestClient;
  readonly blobs: Pick<BlobStore, 'put'>;
}

/** A call whose result is too large for its reply. */
interface LargeCall {
  readonly workspace: string;
  readonly callId: string;
}

/** Results that are fetched at once: each is in memory until it is stored. */
const AT_ONCE = 2;

/** Fetches results that are too large for a reply, and stores them by their digest. */
export class LargeResults {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly deps: LargeResultsDeps) {}

  /**
   * Stores the result of a reply, if it is a large one. Throws `SANDBOX.LOST` (transient) for one
   * that is gone, and `FILE.QUOTA` where the workspace has no room for it.
   */
  async keep(call: LargeCall, reply: ToolReply, signal: AbortSignal): Promise<void> {
    if (reply.outcome !== 'completed' || !reply.large) return;
    const { large } = reply;
    await this.enter();
    try {
      const readPart = (offset: number) => this.readPart(call, offset, large.holder);
      const bytes = await fetchParts(large, { readPart, lost }, signal);
      await this.deps.blobs.put(call.workspace, bytes);
    } finally {
      this.leave();
    }
    // The sandbox forgets a result without it after a minute.
    this.release(call, large.holder).catch(() => undefined);
  }

  private async release(call: LargeCall, holder: string): Promise<void> {
    await this.deps.requests.request(releaseHeldResult, call, { processId: holder });
  }

  private async readPart(call: LargeCall, offset: number, holder: string): Promise<Buffer> {
    const wanted = { ...call, offset };
    try {
      const { data } = await requestWithRetry((options) =>
        this.deps.requests.request(readHeldResult, wanted, { ...options, processId: holder }),
      );
      return Buffer.from(data, 'base64');
    } catch (error) {
      throw isAppError(error) ? lost(error.message) : error;
    }
  }

  private async enter(): Promise<void> {
    if (this.running < AT_ONCE) this.running += 1;
    else await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  private leave(): void {
    const next = this.waiting.shift();
    if (next) next();
    else this.running -= 1;
  }
}

const lost = (why: string): Error => transient('SANDBOX.LOST', `the large result of a call is lost: ${why}`);
