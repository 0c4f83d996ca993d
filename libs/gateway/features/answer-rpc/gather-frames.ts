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
 * a write costs more than what it carries (ADR 0140). Answers what to call before a frame is sent. Order and content are
 * the library's; it changes nothing if that has changed inside.
 */
export const gatherFrames = (socket: WebSocket): (() => void) => {
  let held: Corkable | null = null;
  const release = (): void => {
    const wire = held;
    held = null;
    wire?.uncork();
  };
  return () => {
    if (held !== null) return;
    held = wireOf(socket);
    if (held === null) return;
    held.cork();
    setImmediate(release);
  };
};
