import type { WebSocket } from 'ws';

/** What ws writes to: its own field, which is null once the connection is closed. */
interface Corkable {
  readonly destroyed?: boolean;
  cork(): void;
  uncork(): void;
}

const wireOf = (socket: WebSocket): Corkable | null => {
  const { _socket: wire } = socket as unknown as { readonly _socket?: Partial<Corkable> | null };
  return typeof wire?.cork === 'function' && typeof wire.uncork === 'function' ? (wire as Corkable) : null;
};

/**
 * Lets the frames that a client is sent in one round of the event loop leave in one write: ws writes each by itself, and
 * a write costs more than what it carries (ADR 25). Answers what to call before a frame is sent, and before it is asked
 * what the socket holds: once `mostBytes` wait they leave, or a client that reads would look like one that does not.
 * Order and content are the library's; it changes nothing if that has changed inside.
 */
export const gatherFrames = (socket: WebSocket, mostBytes: number): (() => void) => {
  let held: Corkable | null = null;
  let due = false;
  const release = (): void => {
    const wire = held;
    held = null;
    wire?.uncork();
  };
  const atRoundsEnd = (): void => {
    due = false;
    release();
  };
  return () => {
    if (held !== null && socket.bufferedAmount >= mostBytes) release();
    if (held !== null) return;
    held = wireOf(socket);
    held?.cork();
    if (held === null || due) return;
    due = true;
    setImmediate(atRoundsEnd);
  };
};
