import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { invalid } from '@antiphon/kernel';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { LOG_LEVELS } from '@antiphon/observability';

/** Variables as a process gets them. */
export type Environment = Readonly<Record<string, string | undefined>>;

const blankIsMissing = (value: unknown): unknown => (value === '' ? undefined : value);
const optional = <S extends z.ZodType>(schema: S) => z.preprocess(blankIsMissing, schema.optional());

const ServiceVariables = z.object({
  ANTIPHON_SERVICE_DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/ }),
  ANTIPHON_SERVICE_NATS_URL: z.url({ protocol: /^(nats|tls)$/ }),
  ANTIPHON_SERVICE_NATS_USER: optional(z.string()),
  ANTIPHON_SERVICE_NATS_PASSWORD: optional(z.string()),
  ANTIPHON_TEMPORAL_ADDRESS: optional(z.string()),
  ANTIPHON_SERVICE_HTTP_HOST: optional(z.string()),
  ANTIPHON_SERVICE_HTTP_PORT: optional(z.coerce.number().int().min(0).max(65_535)),
  ANTIPHON_HOME: z.string().refine(isAbsolute, 'must be an absolute path'),
  ANTIPHON_SERVICE_ID: optional(z.string().regex(/^[A-Za-z0-9-]{1,100}$/)),
  ANTIPHON_LOG_LEVEL: optional(z.enum(LOG_LEVELS)),
});

/** What the supervisor, or Kubernetes, tells a service about where it runs. */
export interface ServiceEnv {
  readonly databaseUrl: string;
  readonly natsUrl: string;
  readonly natsUser: string | undefined;
  readonly natsPassword: string | undefined;
  readonly temporalAddress: string | undefined;
  readonly httpHost: string | undefined;
  /** 0 = any free one. */
  readonly httpPort: number | undefined;
  readonly home: string;
  /** Unique for this incarnation of the process: the owner in its leases. */
  readonly serviceId: string;
  readonly logLevel: (typeof LOG_LEVELS)[number];
}

/** Reads a service's variables; throws `SERVICE.BAD_ENVIRONMENT` naming each one that is wrong, never its value. */
export const readServiceEnv = (service: ServiceName, env: Environment, newId: () => string): ServiceEnv => {
  const parsed = ServiceVariables.safeParse(env);
  if (!parsed.success) {
    const names = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
    throw invalid('SERVICE.BAD_ENVIRONMENT', `the service cannot start: ${names.join('; ')}`);
  }
  const variables = parsed.data;
  return {
    databaseUrl: variables.ANTIPHON_SERVICE_DATABASE_URL,
    natsUrl: variables.ANTIPHON_SERVICE_NATS_URL,
    natsUser: variables.ANTIPHON_SERVICE_NATS_USER,
    natsPassword: variables.ANTIPHON_SERVICE_NATS_PASSWORD,
    temporalAddress: variables.ANTIPHON_TEMPORAL_ADDRESS,
    httpHost: variables.ANTIPHON_SERVICE_HTTP_HOST,
    httpPort: variables.ANTIPHON_SERVICE_HTTP_PORT,
    home: variables.ANTIPHON_HOME,
    serviceId: variables.ANTIPHON_SERVICE_ID ?? `${service}-${newId()}`,
    logLevel: variables.ANTIPHON_LOG_LEVEL ?? 'info',
  };
};
