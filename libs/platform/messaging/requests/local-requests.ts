import type { MsgHdrs } from '@nats-io/transport-node';

/** Handles an encoded request as one that came by NATS. Resolves to the encoded reply. */
export type LocalHandler = (data: string, headers: MsgHdrs) => Promise<string>;

/**
 * Requests that a process sends to its hosted services, without NATS (docs/adr/0165). The
 * sender keeps its permissions: a subject that it may not publish is not found here.
 */
export class LocalRequests {
  readonly #handlers = new Map<string, LocalHandler>();

  /** @param mayRequest returns true for a subject to which the sender may send requests */
  constructor(private readonly mayRequest: (subject: string) => boolean) {}

  add(subject: string, handler: LocalHandler): void {
    if (this.mayRequest(subject)) this.#handlers.set(subject, handler);
  }

  /** From now on requests to this subject go to other processes. */
  remove(subject: string): void {
    this.#handlers.delete(subject);
  }

  find(subject: string): LocalHandler | undefined {
    return this.#handlers.get(subject);
  }
}
