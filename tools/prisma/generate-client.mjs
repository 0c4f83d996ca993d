import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/*
 * Generates Prisma Client (`npm run build:client`) from the schema files of the operational tables.
 * The log, the ledger and the projections are not in it: they use `pg`. Does nothing while neither
 * the schema nor Prisma has changed.
 */
const OPERATIONAL = ['base.prisma', 'credentials.prisma', 'identity.prisma'];

const root = join(import.meta.dirname, '../..');
const output = join(root, 'libs/platform/prisma-client/generated');
const stamp = join(output, '.stamp');
/** Has the depth of `prisma/schema`, because the generator's output path is relative. */
const folder = join(root, 'prisma/generated');

const manifest = createRequire(import.meta.url).resolve('prisma/package.json');
const { version, bin } = JSON.parse(readFileSync(manifest, 'utf8'));

const hash = createHash('sha256').update(version);
for (const file of OPERATIONAL) hash.update(readFileSync(join(root, 'prisma/schema', file)));
const state = hash.digest('hex');

const generate = () => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const file of OPERATIONAL) cpSync(join(root, 'prisma/schema', file), join(folder, file));
  const program = join(dirname(manifest), typeof bin === 'string' ? bin : bin.prisma);
  const config = join(root, 'prisma/prisma.config.ts');
  execFileSync(
    process.execPath,
    [program, 'generate', '--config', config, '--schema', folder, '--no-hints'],
    {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
      // The schema engine only migrates. With a path Prisma does not download it.
      env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' },
    },
  );
  rmSync(folder, { recursive: true });
  writeFileSync(stamp, state);
};

if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== state) generate();
