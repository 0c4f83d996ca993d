/** One call, as a handler sees it. */
export interface ToolCall {
  readonly callId: string;
  readonly tool: string;
  /** Epoch of the driver of the session: a newer one has a higher epoch. */
  readonly epoch: number;
  /** The same for each attempt of a call. Send it to a system that knows idempotency keys. */
  readonly idempotencyKey: string;
  /** Time of the timeout. */
  readonly deadline: Date;
  readonly sessionId: string;
  readonly agentId: string | null;
  /** Aborts when the call is cancelled, times out, or is given up because the connection is lost. */
  readonly signal: AbortSignal;
  /** Reports progress to the clients of the session. */
  progress(message: string, fraction?: number): void;
}

/** Retry policy of an idempotent tool. */
export interface ToolRetryPolicy {
  readonly maxAttempts: number;
  readonly backoffMs: number;
  readonly maxBackoffMs: number;
  readonly onTimeout: boolean;
}

export interface ServedTool {
  readonly description: string;
  /** JSON Schema of the input, of type `object`. */
  readonly schema?: Readonly<Record<string, unknown>>;
  /** True if a call may be made again whose outcome is lost. Default: false. */
  readonly idempotent?: boolean;
  /** Timeout of one try, ms. Default: 30,000. */
  readonly timeoutMs?: number;
  readonly retry?: ToolRetryPolicy;
  /** Call without a worker: it fails at once, or waits. Default: `unavailable`. */
  readonly whenAbsent?: 'unavailable' | { readonly waitMs: number };
  /** Returns the result: a text, or a value that is sent as JSON. An error is a failed call. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the schema types the input
  readonly handler: (input: any, call: ToolCall) => unknown;
}
