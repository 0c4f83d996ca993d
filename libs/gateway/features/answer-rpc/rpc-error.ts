import { isAppError, toAppError, type AppError, type ErrorKind } from '@antiphon/kernel';
import { RPC } from '@antiphon/contracts/gateway';

/** The JSON-RPC code of each kind of error (contract §3; docs/errors.md). */
const CODES: Readonly<Record<ErrorKind, number>> = {
  invalid: RPC.invalidParams,
  unauthenticated: RPC.unauthenticated,
  forbidden: RPC.forbidden,
  not_found: RPC.notFound,
  rejected: RPC.invalidParams,
  conflict: RPC.conflict,
  transient: RPC.engineDown,
  exhausted: RPC.exhausted,
  provider: RPC.providerFailed,
  bug: RPC.internal,
};

/** After this many ms a client may try again what an engine's absence refused. */
const RETRY_AFTER_MS = 2_000;

export interface RpcErrorBody {
  readonly code: number;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The error object of an answer: our code and data, the id of the log line, never a stack. */
export const rpcError = (error: unknown, requestId: string): RpcErrorBody => {
  const known: AppError = toAppError(error);
  return {
    code: CODES[known.kind],
    message: known.message,
    data: {
      ...known.data,
      code: known.code,
      requestId,
      ...(known.kind === 'transient' ? { retryAfterMs: RETRY_AFTER_MS } : {}),
    },
  };
};

/** True when the fault is ours or an engine's, so that the log line needs the whole error. */
export const isOurFault = (error: unknown): boolean =>
  !isAppError(error) || error.kind === 'bug' || error.kind === 'transient';
