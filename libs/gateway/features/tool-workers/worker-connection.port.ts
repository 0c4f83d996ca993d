import type { JsonValue } from '@antiphon/kernel';

/** Connection of a program, as its session uses it. */
export interface WorkerConnection {
  readonly connectionId: string;
  readonly address: string;
  send(message: JsonValue): void;
  fail(id: null, error: unknown, requestId: string): void;
  close(code: number, reason: string): void;
  /** Adds a function to run when the connection closes. */
  addCleanup(cleanup: () => void): unknown;
}
