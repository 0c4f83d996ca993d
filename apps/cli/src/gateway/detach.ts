import { INTERRUPTED } from '../output.js';
import type { CommandContext } from '../output.js';
import type { ChatFrame } from './chat-client.js';

/** Place in a session's stream up to which its frames were printed. */
interface Place {
  readonly sessionId: string;
  readonly after: number;
}

/**
 * Detaches from a turn at the first Ctrl-C: the turn continues in the agent, and the command that
 * returns to it is printed. The second Ctrl-C ends the process at once.
 */
export class Detachment {
  private readonly controller = new AbortController();
  private place: Place | null;

  constructor(
    private readonly output: CommandContext['output'],
    place: Place | null = null,
  ) {
    this.place = place;
    process.once('SIGINT', this.detach);
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Notes how far the stream was printed. */
  see({ event, data, offset }: ChatFrame): void {
    const sessionId =
      event === 'accepted' ? (data as { readonly sessionId: string }).sessionId : this.place?.sessionId;
    if (sessionId !== undefined) this.place = { sessionId, after: Math.max(offset, this.place?.after ?? 0) };
  }

  /** Removes the handler, once the turn has ended. */
  end(): void {
    process.off('SIGINT', this.detach);
  }

  private readonly detach = (): void => {
    process.exitCode = INTERRUPTED;
    this.controller.abort();
    if (this.place === null)
      return this.output.note('\ninterrupted before the message was accepted; it may run all the same');
    const { sessionId, after } = this.place;
    this.output.note(
      `\ndetached; the turn continues. See its answer with:\n  antiphon session resume ${sessionId} --after ${after}`,
    );
  };
}
