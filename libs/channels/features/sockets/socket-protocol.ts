/** A message that came by a socket, in the form of a delivery by webhook. */
export interface SocketDelivery {
  readonly body: string;
  readonly contentType: string;
  /** Frame that tells the platform that the message was taken; null for none. */
  readonly ack: string | null;
  /** Interaction that has to be answered within three seconds. */
  readonly interaction: { readonly id: string; readonly token: string } | null;
  /** Number of the message in its session; null for a platform without numbers. */
  readonly seq: number | null;
}

export type SocketAction =
  | { readonly kind: 'send'; readonly frame: string }
  | { readonly kind: 'deliver'; readonly delivery: SocketDelivery }
  /** The connection works: the next failure is the first of its kind. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'heartbeat'; readonly everyMs: number }
  /** The connection ends, and the next one begins after the delay. */
  | { readonly kind: 'close'; readonly reason: string; readonly afterMs: number };

/** State of a session that a later connection resumes. */
export interface SocketSession {
  readonly id: string;
  /** Number of the last message that was taken. */
  readonly seq: number;
  readonly url: string;
  /** Id of the account of the connection. */
  readonly self?: string;
}

/** One connection to a platform: it reads frames, and tells what to do. No input or output. */
export interface SocketProtocol {
  read(frame: unknown): readonly SocketAction[];
  /** Called at each interval of heartbeats. */
  beat(): readonly SocketAction[];
  /** Records that a message was taken. Returns the session to keep, if it has changed. */
  taken(delivery: SocketDelivery): SocketSession | null;
  /** Tells what the end of the connection means for the next one. */
  ended(code: number): { readonly isFatal: boolean; readonly isSessionLost: boolean };
}

type Fields = Readonly<Record<string, unknown>>;

export const fieldsOf = (value: unknown): Fields =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Fields) : {};
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
