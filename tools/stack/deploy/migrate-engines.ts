import { UserError } from '@antiphon/bootstrap/user-error';
import { SERVICES } from '@antiphon/contracts/messaging';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { migrate, withDatabaseTls } from '@antiphon/database';
import { sleep } from '@antiphon/kernel';
import { readTemporalServer } from '@antiphon/temporal/server';
import type { TemporalServer } from '@antiphon/temporal/server';
import { z } from 'zod';
import { ensureNamespace } from '../engines/temporal.js';
import { setPasswords } from '../supervisor/database.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** Settings of the migration job. */
export interface MigrateSettings {
  /** URL of the owner of the tables, who may migrate, create roles and grant. */
  readonly databaseUrl: string;
  /** Null creates roles without a login; services connect with `options=-c role=…` then. */
  readonly passwords: (Readonly<Record<ServiceName, string>> & { readonly archiver?: string }) | null;
  /** Temporal; null skips it. */
  readonly temporal: TemporalServer | null;
}

const MIN_PASSWORD = 16;
const passwordVariable = (service: ServiceName): string =>
  `ANTIPHON_${service.toUpperCase()}_DATABASE_PASSWORD`;

/** Optional: without it the archiver has no login, and nothing leaves the log. */
const ARCHIVER_PASSWORD = 'ANTIPHON_ARCHIVER_DATABASE_PASSWORD';

const emptyToUndefined = (value: string | undefined): string | undefined =>
  value === '' ? undefined : value;
const DatabaseUrl = z.url({ protocol: /^postgres(ql)?$/ });

const refuse = (message: string): never => {
  throw new UserError(`the migration job cannot start: ${message}`, { exitCode: 2 });
};

const readPasswords = (env: Environment): MigrateSettings['passwords'] => {
  const given = SERVICES.map(
    (service) => [service, emptyToUndefined(env[passwordVariable(service)])] as const,
  );
  if (given.every(([, password]) => password === undefined)) return null;
  const wrong = given.filter(([, password]) => (password ?? '').length < MIN_PASSWORD);
  if (wrong.length > 0)
    refuse(
      `each service needs a password of at least ${MIN_PASSWORD} characters, or none does; check ` +
        wrong.map(([service]) => passwordVariable(service)).join(', '),
    );
  const archiver = emptyToUndefined(env[ARCHIVER_PASSWORD]);
  if (archiver !== undefined && archiver.length < MIN_PASSWORD)
    refuse(`${ARCHIVER_PASSWORD} needs at least ${MIN_PASSWORD} characters`);
  const passwords = Object.fromEntries(given) as Record<ServiceName, string>;
  return archiver === undefined ? passwords : { ...passwords, archiver };
};

/** Reads the job's variables. Throws a UserError that names the wrong ones, never their values. */
export const readMigrateSettings = (env: Environment): MigrateSettings => {
  const url = DatabaseUrl.safeParse(env['ANTIPHON_DATABASE_URL']);
  if (!url.success)
    return refuse('ANTIPHON_DATABASE_URL must be the postgresql:// address of the owner of the database');
  return {
    databaseUrl: withDatabaseTls(url.data, env),
    passwords: readPasswords(env),
    temporal: readTemporalServer(env) ?? null,
  };
};

export interface MigrateOptions {
  /** Contains `<name>/migration.sql`. */
  readonly migrationsDir: string;
  /** Receives a line for each finished step. */
  readonly note: (line: string) => void;
  /** Maximum time until Temporal knows a new namespace, milliseconds; default 30 s. */
  readonly namespaceTimeoutMs?: number;
}

const NAMESPACE_TIMEOUT_MS = 30_000;
const RETRY_MS = 1_000;

/** Retries: parts of a server do not know a new namespace until they refresh their caches. */
const ensureTemporal = async (server: TemporalServer, deadline: number): Promise<void> => {
  try {
    return await ensureNamespace(server);
  } catch (error) {
    if (Date.now() + RETRY_MS > deadline) throw error;
  }
  await sleep(RETRY_MS);
  return ensureTemporal(server, deadline);
};

const prepareDatabase = async (settings: MigrateSettings, options: MigrateOptions): Promise<void> => {
  const { databaseUrl, passwords } = settings;
  const { migrationsDir, note } = options;
  const applied = await migrate(databaseUrl, migrationsDir);
  note(applied.length === 0 ? 'database: up to date' : `database: applied ${applied.join(', ')}`);
  if (passwords === null) return note('roles: created by the migrations, without a login');
  await setPasswords(databaseUrl, (role) => passwords[role]);
  note('roles: each service has its own login');
};

/**
 * Prepares external engines, as `npm start` prepares its own. It applies migrations, sets a
 * password per service, and creates Temporal's namespace with its search attributes. It is
 * idempotent, and concurrent runs wait for each other. Throws errors of `migrate`, `pg` and
 * Temporal.
 */
export const migrateEngines = async (settings: MigrateSettings, options: MigrateOptions): Promise<void> => {
  await prepareDatabase(settings, options);
  const { temporal } = settings;
  if (temporal === null) return options.note('Temporal: skipped (no ANTIPHON_TEMPORAL_ADDRESS)');
  await ensureTemporal(temporal, Date.now() + (options.namespaceTimeoutMs ?? NAMESPACE_TIMEOUT_MS));
  options.note('Temporal: the namespace and its search attributes exist');
};
