import { z } from 'zod';

/**
 * A request to a service on `cmd.<service>.<verb>`. One process of the service's queue group
 * handles it.
 */
export interface RequestContract<Request extends z.ZodType, Reply extends z.ZodType> {
  readonly subject: `cmd.${string}`;
  readonly request: Request;
  readonly reply: Reply;
  /** Time after which the caller gives up, ms. */
  readonly timeoutMs: number;
  /** True if a caller may choose the process that handles it. Default: false. */
  readonly toProcess?: true;
}

/** Declares a request contract with the types of its schemas. */
export const defineRequest = <Request extends z.ZodType, Reply extends z.ZodType>(
  contract: RequestContract<Request, Reply>,
): RequestContract<Request, Reply> => contract;

/** Id of a process of a service, unique for its incarnation. It is one token of a subject. */
export const ProcessId = z.string().regex(/^[A-Za-z0-9-]{1,100}$/);

/** Returns the subject of a request to one process of a service, which no other one handles. */
export const processSubject = (subject: string, processId: string): string => `${subject}.${processId}`;

/** An error as it crosses services. It never holds a stack trace, SQL or a secret. */
export const WireError = z.object({
  kind: z.string(),
  code: z.string(),
  message: z.string(),
  data: z.record(z.string(), z.unknown()).default({}),
});
export type WireError = z.infer<typeof WireError>;

export const SERVICES = ['gateway', 'agent', 'sandbox', 'metering', 'memory'] as const;
export type ServiceName = (typeof SERVICES)[number];

/**
 * Headers of every message. Session and turn are set where they are known, for log lines and spans.
 */
export const HEADERS = {
  traceparent: 'traceparent',
  correlationId: 'x-correlation-id',
  causationId: 'x-causation-id',
  sessionId: 'x-session-id',
  turnId: 'x-turn-id',
  /** Position of the log that the receiver's projections must reach before it reads them. */
  after: 'x-after-position',
} as const;

/** Health of one service and its dependencies, as `status` and `/readyz` show it. */
export const HealthReport = z.object({
  service: z.enum(SERVICES),
  healthy: z.boolean(),
  pid: z.int(),
  uptimeMs: z.number(),
  version: z.string(),
  checks: z
    .array(z.object({ name: z.string(), healthy: z.boolean(), detail: z.string().optional() }))
    .describe('Engines that the service needs, each checked now.'),
  warnings: z
    .array(z.object({ name: z.string(), detail: z.string() }))
    .optional()
    .describe('Restrictions of a service that is ready. Absent without any.'),
  facts: z
    .record(z.string(), z.json())
    .default({})
    .describe('Details of this service, such as its providers or its plug-ins.'),
});
export type HealthReport = z.infer<typeof HealthReport>;

/** Returns the health request of a service. */
export const healthContract = <S extends ServiceName>(service: S) =>
  defineRequest({
    subject: `cmd.${service}.health.check`,
    request: z.strictObject({}),
    reply: HealthReport,
    timeoutMs: 2_000,
  });
