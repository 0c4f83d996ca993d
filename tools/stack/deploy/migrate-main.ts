import { fileURLToPath } from 'node:url';
import { UserError } from '@antiphon/bootstrap/user-error';
import { migrateEngines } from './migrate-engines.js';
import { readMigrateSettings } from './migrate-settings.js';

/** The same distance in the project and in the image (tools/deploy/stage). */
const MIGRATIONS = fileURLToPath(new URL('../../../../prisma/migrations', import.meta.url));

/** The job that runs before each version's services: `docker compose`' and Kubernetes' `migrate`. */
try {
  await migrateEngines(readMigrateSettings(process.env), {
    migrationsDir: MIGRATIONS,
    note: (line) => console.log(line),
  });
} catch (error) {
  const { message } = error as Error;
  console.error(error instanceof UserError ? message : `the migration job failed: ${message}`);
  process.exitCode = error instanceof UserError ? error.exitCode : 1;
}
