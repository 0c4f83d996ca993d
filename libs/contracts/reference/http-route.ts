import type { z } from 'zod';

/** One route of the gateway, as its reference tells it. A route that is not here does not exist, and the other way round. */
export interface HttpRoute {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** With `{name}` for a part that a caller gives. */
  readonly path: string;
  readonly summary: string;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** True where an `Idempotency-Key` joins a repeated request to the first. */
  readonly idempotent?: boolean;
  /** `media` where it is not JSON, `status` where it is not 200. */
  readonly reply: { readonly schema: z.ZodType; readonly media?: string; readonly status?: number };
  /** Statuses of problem documents that a caller should expect, with what they mean. */
  readonly problems?: Readonly<Record<number, string>>;
  /** True for probes, which need no token. */
  readonly open?: boolean;
  /** True for what every service has. */
  readonly everywhere?: boolean;
}
