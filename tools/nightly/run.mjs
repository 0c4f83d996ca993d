import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/*
 * `npm run test:nightly`: what takes longer than `npm test` may. `-- --only NAME` runs one of them.
 * The last line is `N passed, N failed`.
 */
const PARTS = {
  'fresh clones, their tests included': ['tools/bootstrap/verify-fresh-clone.mjs', '--tests'],
  'what deploys': ['tools/deploy/validate.mjs'],
  'loads, sweeps and soaks': [
    'tools/bootstrap/test.cjs',
    '--config',
    'jest.nightly.config.mjs',
    '--maxWorkers=1',
    '--passWithNoTests',
  ],
  'traces in a real backend': ['tools/nightly/traces-in-phoenix.mjs'],
};

const at = process.argv.indexOf('--only');
const only = at < 0 ? undefined : (process.argv[at + 1] ?? '');
const wanted = Object.entries(PARTS).filter(([name]) => only === undefined || name.includes(only));
if (wanted.length === 0) {
  console.error(`there is no part "${only}"; there are: ${Object.keys(PARTS).join('; ')}`);
  process.exit(2);
}

const failed = wanted.filter(([name, args]) => {
  console.log(`\n== ${name}`);
  const { status } = spawnSync(process.execPath, args, {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    stdio: 'inherit',
  });
  return status !== 0;
});
for (const [name] of failed) console.log(`failed: ${name}`);
console.log(`${wanted.length - failed.length} passed, ${failed.length} failed`);
process.exit(failed.length === 0 ? 0 : 1);
