import { z } from 'zod';

/** No call of a tool takes longer, whoever asks for it. */
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

/** How a tool's calls are tried again after a try that may be repeated: of one that is idempotent, or that reached no tool. */
export const ToolRetry = z
  .object({
    /** Tries that may have reached the tool; those that certainly did not are not counted. */
    maxAttempts: attempts,
    /** Before the second try; twice as long before each further one. */
    backoffMs: firstBackoff,
    maxBackoffMs: longestBackoff,
    /** Whether a call that ran out of its time is tried again. */
    onTimeout: z.boolean(),
  })
  .refine(({ backoffMs, maxBackoffMs }) => backoffMs <= maxBackoffMs, {
    path: ['maxBackoffMs'],
    message: GROWS,
  });
export type ToolRetry = z.infer<typeof ToolRetry>;
/** What holds for an idempotent tool that declares nothing; any other is tried once. */
export const DEFAULT_TOOL_RETRY: ToolRetry = {
  maxAttempts: 3,
  backoffMs: 500,
  maxBackoffMs: 30_000,
  onTimeout: false,
};

/** What somebody else than the tool allows at most; what is absent is not limited. */
export interface RetryCaps {
  readonly maxAttempts?: number | null;
  readonly maxBackoffMs?: number | null;
}

/** The same policy, within caps: fewer tries and shorter waits, never more. */
export const narrowRetry = (retry: ToolRetry, { maxAttempts, maxBackoffMs }: RetryCaps): ToolRetry => {
  const longest = Math.min(retry.maxBackoffMs, maxBackoffMs ?? retry.maxBackoffMs);
  return {
    maxAttempts: Math.min(retry.maxAttempts, maxAttempts ?? retry.maxAttempts),
    backoffMs: Math.min(retry.backoffMs, longest),
    maxBackoffMs: longest,
    onTimeout: retry.onTimeout,
  };
};

/** The retries that a tool declares, as it writes them in JSON. */
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
    /** For one try of a call. */
    timeout_ms: z.int().min(MIN_TOOL_TIMEOUT_MS).max(MAX_TOOL_TIMEOUT_MS).optional(),
    retry: DeclaredRetry.optional(),
  })
  .transform(({ timeout_ms: timeoutMs, retry }): DeclaredToolPolicy => ({
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(retry === undefined ? {} : { retry }),
  }));

/** How a tool wants its calls to be made; what it does not say is the operator's. */
export interface DeclaredToolPolicy {
  readonly timeoutMs?: number;
  readonly retry?: ToolRetry;
}

export type ToolPolicyResult =
  | { readonly ok: true; readonly policy: DeclaredToolPolicy }
  | { readonly ok: false; readonly reason: string };

/** Reads `timeout_ms` and `retry` of what `describe()` answered. The reason names the key; it may hold the tool's own words. */
export const parseToolPolicy = (answer: unknown): ToolPolicyResult => {
  const parsed = DeclaredPolicy.safeParse(answer);
  if (parsed.success) return { ok: true, policy: parsed.data };
  const [{ path, message } = { path: [], message: 'unreadable' }] = parsed.error.issues;
  return { ok: false, reason: `"${path.join('.')}" ${message}` };
};
