import type { SpeechNotification } from '@antiphon/contracts/agent';
import { createBoundedMap } from '@antiphon/kernel';

/** Event that began a model call. */
export interface OpenCall {
  readonly attempt: number;
  readonly eventId: string;
  readonly position: number;
}

/** Number of notifications that wait for their call. */
const MAX_EARLY = 1_000;

/** Open model calls by turn, and notifications of first texts that came before their call. */
export class OpenCalls {
  readonly #open = new Map<string, OpenCall>();
  readonly #early = createBoundedMap<SpeechNotification>(MAX_EARLY);

  /** Records the start of a call. Returns the notification that has waited for it. */
  begin(turnId: string, call: OpenCall): SpeechNotification | undefined {
    this.#open.set(turnId, call);
    const early = this.#early.get(turnId);
    return early?.attempt === call.attempt ? early : undefined;
  }

  end(turnId: string): void {
    this.#open.delete(turnId);
  }

  /** Returns the call that speaks. A notification of a call that is not read yet waits for it. */
  find(speech: SpeechNotification): OpenCall | undefined {
    const call = this.#open.get(speech.turnId);
    if (call?.attempt === speech.attempt) return call;
    if ((call?.attempt ?? 0) < speech.attempt) this.#early.put(speech.turnId, speech);
    return undefined;
  }
}
