import { z } from 'zod';

/** Maximum timeout of a tool call, ms. */
export const MAX_TOOL_TIMEOUT_MS = 60_000;
export const MIN_TOOL_TIMEOUT_MS = 10;
export const MAX_TOOL_ATTEMPTS = 10;
const MAX_FIRST_BACKOFF_MS = 60_000;
export const MIN_TOOL_BACKOFF_MS = 10;
export const MAX_TOOL_BACKOFF_MS = 600_000;

const attempts = z.int().min(1).max(MAX_TOOL_ATTEMPTS);
const firstBackoff = z.int().min(MIN_TOOL_BACKOFF_MS).max(MAX_FIRST_BACKOFF_MS);
const longestBackoff = z.int().min(MIN_TOOL_BACKOFF_MS).max(MAX_TOOL_BACKOFF_MS);
const GROWS = 'must not be less than the first backoff';

/**
 * Retry policy of a tool. It applies to a try that reached no tool, and to any try of an idempotent
 * tool.
 */
export const ToolRetry = z
  .object({
    /**
     * Maximum number of tries that may have reached the tool. Tries that reached no tool do not
     * count.
     */
    maxAttempts: attempts,
    /** Backoff before the second try, ms. It doubles before each further try. */
    backoffMs: firstBackoff,
    maxBackoffMs: longestBackoff,
    /** True if a call that timed out is retried. */
    onTimeout: z.boolean(),
  })
  .refine(({ backoffMs, maxBackoffMs }) => backoffMs <= maxBackoffMs, {
    path: ['maxBackoffMs'],
    message: GROWS,
  });
export type ToolRetry = z.infer<typeof ToolRetry>;
/** Retry policy of an idempotent tool that declares none. Any other tool gets one try. */
export const DEFAULT_TOOL_RETRY: ToolRetry = {
  maxAttempts: 3,
  backoffMs: 500,
  maxBackoffMs: 30_000,
  onTimeout: false,
};

/** Limits that the operator or the agent sets. An absent limit does not apply. */
export interface RetryCaps {
  readonly maxAttempts?: number | null;
  readonly maxBackoffMs?: number | null;
}

/** Returns a retry policy narrowed to the caps: fewer tries and shorter backoff, never more. */
export const narrowRetry = (retry: ToolRetry, { maxAttempts, maxBackoffMs }: RetryCaps): ToolRetry => {
  const longest = Math.min(retry.maxBackoffMs, maxBackoffMs ?? retry.maxBackoffMs);
  return {
    maxAttempts: Math.min(retry.maxAttempts, maxAttempts ?? retry.maxAttempts),
    backoffMs: Math.min(retry.backoffMs, longest),
    maxBackoffMs: longest,
    onTimeout: retry.onTimeout,
  };
};

/** Retry policy as a tool declares it in JSON. */
const DeclaredRetry = z
  .strictObject({
    max_attempts: attempts,
    backoff_ms: firstBackoff.default(DEFAULT_TOOL_RETRY.backoffMs),
    max_backoff_ms: longestBackoff.optional(),
    on_timeout: z.boolean().default(DEFAULT_TOOL_RETRY.onTimeout),
  })
  .refine(({ backoff_ms: first, max_backoff_ms: longest = first }) => first <= longest, {
    path: ['max_backoff_ms'],
    message: GROWS,
  })
  .transform((declared): ToolRetry => ({
    maxAttempts: declared.max_attempts,
    backoffMs: declared.backoff_ms,
    maxBackoffMs: declared.max_backoff_ms ?? Math.max(declared.backoff_ms, DEFAULT_TOOL_RETRY.maxBackoffMs),
    onTimeout: declared.on_timeout,
  }));

const DeclaredPolicy = z
  .object({
    /** Timeout of one try, ms. */
    timeout_ms: z.int().min(MIN_TOOL_TIMEOUT_MS).max(MAX_TOOL_TIMEOUT_MS).optional(),
    retry: DeclaredRetry.optional(),
  })
  .transform(({ timeout_ms: timeoutMs, retry }): DeclaredToolPolicy => ({
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(retry === undefined ? {} : { retry }),
  }));

/** Policy that a tool declares. The operator's settings fill in the rest. */
export interface DeclaredToolPolicy {
  readonly timeoutMs?: number;
  readonly retry?: ToolRetry;
}

export type ToolPolicyResult =
  | { readonly ok: true; readonly policy: DeclaredToolPolicy }
  | { readonly ok: false; readonly reason: string };

/**
 * Parses `timeout_ms` and `retry` of the result of `describe()`. A failure names the key and may
 * quote the tool.
 */
export const parseToolPolicy = (answer: unknown): ToolPolicyResult => {
  const parsed = DeclaredPolicy.safeParse(answer);
  if (parsed.success) return { ok: true, policy: parsed.data };
  const [{ path, message } = { path: [], message: 'unreadable' }] = parsed.error.issues;
  return { ok: false, reason: `"${path.join('.')}" ${message}` };
};
