import { createToken } from '@antiphon/service-host';

/** False once the process accepts no more turns. */
export const TAKES_TURNS = createToken<() => boolean>('TAKES_TURNS');

/** Signals of the end of this process. */
export class Shutdown {
  /** Aborted first: the process accepts no more turns. */
  readonly stopping = new AbortController();
  /** Aborted after the drain: running turns need their leases until they have ended. */
  readonly drained = new AbortController();

  readonly takesTurns = (): boolean => !this.stopping.signal.aborted;
}
