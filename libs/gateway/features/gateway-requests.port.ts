import type { RequestContract } from '@antiphon/contracts/messaging';
import type { RequestOptions } from '@antiphon/messaging';
import type { z } from 'zod';

/** How the gateway asks the other services; the messaging client is one, tests bring their own. */
export interface GatewayRequests {
  request<Request extends z.ZodType, Reply extends z.ZodType>(
    contract: RequestContract<Request, Reply>,
    payload: z.input<Request>,
    options?: RequestOptions,
  ): Promise<z.output<Reply>>;
}
