import { z } from 'zod';
import { UserError } from '@antiphon/bootstrap/user-error';
import { SERVICES } from '@antiphon/contracts/messaging';
import type { ServiceName } from '@antiphon/contracts/messaging';

export type Environment = Readonly<Record<string, string | undefined>>;

/** What the migration job works on. */
export interface MigrateSettings {
  /** As the owner of the tables: may migrate, make roles and grant. */
  readonly databaseUrl: string;
  /** Null: roles are made, but nobody may log in with them (services connect with `options=-c role=…`). */
  readonly passwords: Readonly<Record<ServiceName, string>> | null;
  /** `host:port` of Temporal; null: it is left alone. */
  readonly temporalAddress: string | null;
}

const MIN_PASSWORD = 16;
const passwordVariable = (service: ServiceName): string =>
  `ANTIPHON_${service.toUpperCase()}_DATABASE_PASSWORD`;

const blankIsMissing = (value: string | undefined): string | undefined => (value === '' ? undefined : value);
const DatabaseUrl = z.url({ protocol: /^postgres(ql)?$/ });

const refuse = (message: string): never => {
  throw new UserError(`the migration job cannot start: ${message}`, { exitCode: 2 });
};

const readPasswords = (env: Environment): MigrateSettings['passwords'] => {
  const given = SERVICES.map((service) => [service, blankIsMissing(env[passwordVariable(service)])] as const);
  if (given.every(([, password]) => password === undefined)) return null;
  const wrong = given.filter(([, password]) => (password ?? '').length < MIN_PASSWORD);
  if (wrong.length > 0)
    refuse(
      `each service needs a password of at least ${MIN_PASSWORD} characters, or none does; look at ` +
        wrong.map(([service]) => passwordVariable(service)).join(', '),
    );
  return Object.fromEntries(given) as Record<ServiceName, string>;
};

/** Reads the job's variables; throws a UserError (exit code 2) that names what is wrong, never a value. */
export const readMigrateSettings = (env: Environment): MigrateSettings => {
  const url = DatabaseUrl.safeParse(env['ANTIPHON_DATABASE_URL']);
  if (!url.success)
    return refuse('ANTIPHON_DATABASE_URL must be the postgresql:// address of the owner of the database');
  return {
    databaseUrl: url.data,
    passwords: readPasswords(env),
    temporalAddress: blankIsMissing(env['ANTIPHON_TEMPORAL_ADDRESS']) ?? null,
  };
};
