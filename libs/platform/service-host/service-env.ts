import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { invalid } from '@antiphon/kernel';
import { ProcessId, type ServiceName } from '@antiphon/contracts/messaging';
import { withDatabaseTls } from '@antiphon/database';
import { readNatsTls } from '@antiphon/messaging';
import type { NatsTls } from '@antiphon/messaging';
import { LOG_LEVELS } from '@antiphon/observability';

/** Version of all packages; a test compares it with the root package. */
export const VERSION = '0.1.0';

/** Identity of this process. */
export interface ServiceIdentity {
  readonly service: ServiceName;
  /** Unique for this incarnation of the process; its lease owners begin with it. */
  readonly id: string;
  readonly pid: number;
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** ANTIPHON_HOME: the folder for the service's files. */
  readonly home: string;
}

/** Environment variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

const blankToUndefined = (value: unknown): unknown => (value === '' ? undefined : value);

/** Makes a variable optional; a blank one counts as missing. */
export const optionalVariable = <S extends z.ZodType>(schema: S) =>
  z.preprocess(blankToUndefined, schema.optional());

/**
 * Parses variables; throws `SERVICE.BAD_ENVIRONMENT`, which names each wrong variable but not its
 * value.
 */
export const parseVariables = <S extends z.ZodType>(schema: S, env: Environment): z.output<S> => {
  const parsed = schema.safeParse(env);
  if (parsed.success) return parsed.data;
  const names = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  throw invalid('SERVICE.BAD_ENVIRONMENT', `the service cannot start: ${names.join('; ')}`);
};

const HOSTED = 'ANTIPHON_HOSTED_SERVICES';
const HostedEnvironments = z.record(z.string(), z.record(z.string(), z.string()));

/**
 * Returns a function that finds the environment of a service which this process hosts. Throws
 * `SERVICE.BAD_ENVIRONMENT`, without a value of a variable.
 */
export const readHostedEnvironments = (env: Environment): ((service: ServiceName) => Environment) => {
  const broken = (problem: string) =>
    invalid('SERVICE.BAD_ENVIRONMENT', `the service cannot start: ${HOSTED} ${problem}`);
  let parsed: ReturnType<typeof HostedEnvironments.safeParse>;
  try {
    parsed = HostedEnvironments.safeParse(JSON.parse(env[HOSTED] ?? ''));
  } catch {
    throw broken('is missing or not JSON');
  }
  const environments = parsed.data;
  if (!environments) throw broken('is not an object of variables for each service');
  return (service) => {
    const found = environments[service];
    if (!found) throw broken(`has no variables for ${service}`);
    return found;
  };
};

const ServiceVariables = z.object({
  ANTIPHON_SERVICE_DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/ }),
  ANTIPHON_SERVICE_NATS_URL: z.url({ protocol: /^(nats|tls)$/ }),
  ANTIPHON_SERVICE_NATS_USER: optionalVariable(z.string()),
  ANTIPHON_SERVICE_NATS_PASSWORD: optionalVariable(z.string()),
  ANTIPHON_SERVICE_HTTP_HOST: optionalVariable(z.string()),
  ANTIPHON_SERVICE_HTTP_PORT: optionalVariable(z.coerce.number().int().min(0).max(65_535)),
  ANTIPHON_HOME: z.string().refine(isAbsolute, 'must be an absolute path'),
  ANTIPHON_SERVICE_ID: optionalVariable(ProcessId),
  ANTIPHON_LOG_LEVEL: optionalVariable(z.enum(LOG_LEVELS)),
});

/** Addresses and identity that the supervisor, or Kubernetes, gives to a service. */
export interface ServiceEnv {
  readonly databaseUrl: string;
  readonly natsUrl: string;
  readonly natsUser: string | undefined;
  readonly natsPassword: string | undefined;
  readonly natsTls: NatsTls | undefined;
  readonly httpHost: string | undefined;
  /** 0 selects a free port. */
  readonly httpPort: number | undefined;
  readonly home: string;
  /** Owner of the process's leases, unique for its incarnation. */
  readonly serviceId: string;
  readonly logLevel: (typeof LOG_LEVELS)[number];
}

/** Reads a service's variables; throws `SERVICE.BAD_ENVIRONMENT`. */
export const readServiceEnv = (service: ServiceName, env: Environment, newId: () => string): ServiceEnv => {
  const variables = parseVariables(ServiceVariables, env);
  return {
    databaseUrl: withDatabaseTls(variables.ANTIPHON_SERVICE_DATABASE_URL, env),
    natsUrl: variables.ANTIPHON_SERVICE_NATS_URL,
    natsUser: variables.ANTIPHON_SERVICE_NATS_USER,
    natsPassword: variables.ANTIPHON_SERVICE_NATS_PASSWORD,
    natsTls: readNatsTls(env),
    httpHost: variables.ANTIPHON_SERVICE_HTTP_HOST,
    httpPort: variables.ANTIPHON_SERVICE_HTTP_PORT,
    home: variables.ANTIPHON_HOME,
    serviceId: variables.ANTIPHON_SERVICE_ID ?? `${service}-${newId()}`,
    logLevel: variables.ANTIPHON_LOG_LEVEL ?? 'info',
  };
};
