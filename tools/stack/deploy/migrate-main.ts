import { fileURLToPath } from 'node:url';
import { UserError } from '@antiphon/bootstrap/user-error';
import { migrateEngines, readMigrateSettings } from './migrate-engines.js';

/** Folder of the migrations, at the same relative path in the project and in the image. */
const MIGRATIONS = fileURLToPath(new URL('../../../../prisma/migrations', import.meta.url));

// Job that runs before each version's services, `migrate` in Docker Compose and Kubernetes.
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
