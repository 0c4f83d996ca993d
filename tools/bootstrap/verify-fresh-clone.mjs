import { parseArgs } from 'node:util';
import { CHECKS } from './verify/checks.mjs';
import { createWorkshop } from './verify/workshop.mjs';

/*
 * Checks `npm start`, `npm stop` and `npm test` on fresh clones of the last commit.
 * Options are [--cold] [--tests] [--only NAME] [--keep].
 * `--cold` begins with empty caches, which takes 10 minutes more. `--tests` adds `npm test`.
 * Checks that need root (mount, unshare) are skipped for other users.
 */
const { values: flags } = parseArgs({
  options: {
    cold: { type: 'boolean', default: false },
    tests: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    only: { type: 'string' },
  },
});

const runCheck = async (name, check, workshop) => {
  const began = Date.now();
  const seconds = () => `${((Date.now() - began) / 1000).toFixed(1)} s`;
  try {
    const outcome = await check(workshop);
    console.log(
      `${outcome?.skipped ? 'skip' : 'ok  '}  ${name}: ${outcome?.skipped ?? outcome?.note ?? ''} (${seconds()})`,
    );
    return true;
  } catch (error) {
    console.log(`FAIL  ${name}: ${error.message} (${seconds()})`);
    return false;
  }
};

const workshop = await createWorkshop(flags);
let failed = 0;
try {
  for (const [name, check] of Object.entries(CHECKS)) {
    if (flags.only !== undefined && !name.includes(flags.only)) continue;
    if (!(await runCheck(name, check, workshop))) failed++;
  }
} finally {
  await workshop.dispose();
}
console.log(failed === 0 ? 'all checks passed' : `${failed} checks failed`);
process.exitCode = failed === 0 ? 0 : 1;
