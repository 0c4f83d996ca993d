import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/*
 * Writes a migration that applies files of `prisma/functions`:
 * `npm run new:migration -- <name> [function …]`. Edit the files of the functions first. The
 * migration holds their whole text, because an applied migration never changes. Add the other
 * statements by hand.
 */
const NAME = /^[a-z][a-z0-9_]*$/;

/** Returns a folder name that sorts after all existing ones, even after one of a later date. */
export const nameMigration = (existing, title, now) => {
  const times = existing.map((name) => BigInt(/^\d{14}/.exec(name)?.[0] ?? 0));
  const newest = times.reduce((a, b) => (a > b ? a : b), 0n);
  const time = BigInt(now.toISOString().replaceAll(/\D/g, '').slice(0, 14));
  return `${time > newest ? time : newest + 10n}_${title}`;
};

/** Writes the migration and returns its path. */
export const writeMigration = (folder, title, functions, now) => {
  if (!NAME.test(title ?? '')) throw new Error('usage: npm run new:migration -- <name> [function …]');
  const files = functions.map((name) => join(folder, 'functions', `${name}.sql`));
  const missing = files.find((file) => !existsSync(file));
  if (missing) throw new Error(`there is no ${missing}`);
  const name = nameMigration(readdirSync(join(folder, 'migrations')), title, now);
  const migration = join(folder, 'migrations', name, 'migration.sql');
  mkdirSync(join(folder, 'migrations', name));
  writeFileSync(migration, files.map((file) => readFileSync(file, 'utf8')).join('\n'));
  return migration;
};

if (process.argv[1] === import.meta.filename) {
  const root = join(import.meta.dirname, '../..');
  const [title, ...functions] = process.argv.slice(2);
  try {
    const migration = writeMigration(join(root, 'prisma'), title, functions, new Date());
    process.stdout.write(`wrote ${relative(root, migration)}\n`);
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
