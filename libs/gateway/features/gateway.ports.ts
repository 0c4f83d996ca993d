import type { RequestContract } from '@antiphon/contracts/messaging';
import type { RequestOptions } from '@antiphon/messaging';
import type { z } from 'zod';

/** Token of the function that returns the status for a reader: `StatusReader`. */
export const STATUS = Symbol('STATUS');
/** Token of the `Identities`: API keys. */
export const IDENTITIES = Symbol('IDENTITIES');
/** Token of the `Authenticator`. */
export const AUTHENTICATOR = Symbol('AUTHENTICATOR');
/** Token of the `FrameLog`. */
export const FRAME_LOG = Symbol('FRAME_LOG');
/** Token of the `SessionFeeds`. */
export const SESSION_FEEDS = Symbol('SESSION_FEEDS');
/** Token of the `AgentStateFeed`. */
export const AGENT_STATE_FEED = Symbol('AGENT_STATE_FEED');
/** Token of the `LogTail`. */
export const LOG_TAIL = Symbol('LOG_TAIL');
/** Token of the `ChatStreams`. */
export const CHAT_STREAMS = Symbol('CHAT_STREAMS');
/** Token of the `DashboardFiles`. */
export const DASHBOARD_FILES = Symbol('DASHBOARD_FILES');

/** Client for requests to the other services. */
export interface GatewayRequests {
  request<Request extends z.ZodType, Reply extends z.ZodType>(
    contract: RequestContract<Request, Reply>,
    payload: z.input<Request>,
    options?: RequestOptions,
  ): Promise<z.output<Reply>>;
}
