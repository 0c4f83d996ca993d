import { setTimeout as pause } from 'node:timers/promises';
import { migrate } from '@antiphon/database';
import { ensureNamespace } from '../engines/temporal-namespace.js';
import { setServicePasswords } from '../supervisor/database.js';
import type { MigrateSettings } from './migrate-settings.js';

export interface MigrateOptions {
  /** Holds `<name>/migration.sql`. */
  readonly migrationsDir: string;
  /** Told of each step that is done. */
  readonly note: (line: string) => void;
  /** How long a Temporal that has just been given a namespace may take to know it; default 30 s. */
  readonly patienceMs?: number;
}

const PATIENCE_MS = 30_000;
const RETRY_MS = 1_000;

/** A namespace that has just been made is unknown to some parts of a server until their next look. */
const ensureTemporal = async (address: string, deadline: number): Promise<void> => {
  try {
    return await ensureNamespace(address);
  } catch (error) {
    if (Date.now() + RETRY_MS > deadline) throw error;
  }
  await pause(RETRY_MS);
  return ensureTemporal(address, deadline);
};

const prepareDatabase = async (settings: MigrateSettings, options: MigrateOptions): Promise<void> => {
  const { databaseUrl, passwords } = settings;
  const { migrationsDir, note } = options;
  const applied = await migrate(databaseUrl, migrationsDir);
  note(applied.length === 0 ? 'database: up to date' : `database: applied ${applied.join(', ')}`);
  if (passwords === null) return note('roles: made by the migrations, without a login');
  await setServicePasswords(databaseUrl, (service) => passwords[service]);
  note('roles: each service logs in with its own');
};

/**
 * Makes engines that run elsewhere ready for the services, as `npm start` does with its own: the database's schema, a
 * role for each service with its password, Temporal's namespace and search attributes. Safe to run again, and beside
 * another one: migrations wait for each other. Throws what `migrate` throws, `pg`'s errors, and Temporal's.
 */
export const migrateEngines = async (settings: MigrateSettings, options: MigrateOptions): Promise<void> => {
  await prepareDatabase(settings, options);
  const { temporalAddress } = settings;
  if (temporalAddress === null) return options.note('Temporal: left alone (no ANTIPHON_TEMPORAL_ADDRESS)');
  await ensureTemporal(temporalAddress, Date.now() + (options.patienceMs ?? PATIENCE_MS));
  options.note('Temporal: the namespace and its search attributes are there');
};
