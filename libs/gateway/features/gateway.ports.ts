import type { RequestContract } from '@antiphon/contracts/messaging';
import type { RequestOptions } from '@antiphon/messaging';
import type { z } from 'zod';

/** Token of the workspace that this version serves: string. */
export const WORKSPACE = Symbol('WORKSPACE');
/** Token of the function that returns the status of the installation: `StatusReader`. */
export const STATUS = Symbol('STATUS');
/** Token of the `TokenGate`. */
export const TOKEN_GATE = Symbol('TOKEN_GATE');
/** Token of the `FrameLog`. */
export const FRAME_LOG = Symbol('FRAME_LOG');
/** Token of the `SessionFeeds`. */
export const SESSION_FEEDS = Symbol('SESSION_FEEDS');
/** Token of the `MethodTable`. */
export const METHODS = Symbol('METHODS');

/** Principal of all HTTP requests until API keys tell callers apart. It scopes idempotency keys. */
export const HTTP_CALLER = 'http:token';

/** Client for requests to the other services. */
export interface GatewayRequests {
  request<Request extends z.ZodType, Reply extends z.ZodType>(
    contract: RequestContract<Request, Reply>,
    payload: z.input<Request>,
    options?: RequestOptions,
  ): Promise<z.output<Reply>>;
}
