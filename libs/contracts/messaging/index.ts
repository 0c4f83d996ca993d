import { z } from 'zod';

/** A request that one service answers: `cmd.<service>.<verb>`, in the queue group of that service. */
export interface RequestContract<Request extends z.ZodType, Reply extends z.ZodType> {
  readonly subject: `cmd.${string}`;
  readonly request: Request;
  readonly reply: Reply;
  /** How long a caller waits, in ms. */
  readonly timeoutMs: number;
}

export const defineRequest = <Request extends z.ZodType, Reply extends z.ZodType>(
  contract: RequestContract<Request, Reply>,
): RequestContract<Request, Reply> => contract;

/** How an error crosses from one service to another: never a stack, SQL or a secret. */
export const WireError = z.object({
  kind: z.string(),
  code: z.string(),
  message: z.string(),
  data: z.record(z.string(), z.unknown()).default({}),
});
export type WireError = z.infer<typeof WireError>;

export const SERVICES = ['gateway', 'agent', 'sandbox', 'metering', 'memory'] as const;
export type ServiceName = (typeof SERVICES)[number];

/** Headers that every message carries (contract §6); session and turn where they are known, for log lines and spans. */
export const HEADERS = {
  traceparent: 'traceparent',
  correlationId: 'x-correlation-id',
  causationId: 'x-causation-id',
  sessionId: 'x-session-id',
  turnId: 'x-turn-id',
} as const;

/** One dependency or the service itself, as `status` and `/readyz` show it. */
export const HealthReport = z.object({
  service: z.enum(SERVICES),
  healthy: z.boolean(),
  pid: z.int(),
  uptimeMs: z.number(),
  version: z.string(),
  checks: z.array(z.object({ name: z.string(), healthy: z.boolean(), detail: z.string().optional() })),
  /** What only this service knows, such as its provider or its plug-ins. */
  facts: z.record(z.string(), z.json()).default({}),
});
export type HealthReport = z.infer<typeof HealthReport>;

export const healthContract = <S extends ServiceName>(service: S) =>
  defineRequest({
    subject: `cmd.${service}.health.check`,
    request: z.strictObject({}),
    reply: HealthReport,
    timeoutMs: 2_000,
  });
