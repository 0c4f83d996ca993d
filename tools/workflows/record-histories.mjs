import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/*
 * Records Temporal histories from real runs on a real server, for specs that replay them. The name
 * is an argument (`npm run record:histories -- 2026-11-22`). Older files stay, because workflows
 * that began with them must continue.
 */
const [name] = process.argv.slice(2);
if (!/^[a-z0-9-]{1,40}$/.test(name ?? '')) {
  process.stderr.write('say under which name: npm run record:histories -- 2026-11-22\n');
  process.exit(2);
}
const root = fileURLToPath(new URL('../..', import.meta.url));
const jest = `${root}node_modules/jest/bin/jest.js`;
const specs = ['runs/histories', 'maintenance/archive-old-events'].map(
  (spec) => `libs/orchestration/features/${spec}.int.spec.ts`,
);
const { status } = spawnSync(
  process.execPath,
  [jest, '--selectProjects', 'int', '-t', 'recording|by a schedule', '--', ...specs],
  {
    cwd: root,
    stdio: 'inherit',
    env: {
      ...process.env,
      ANTIPHON_RECORD_HISTORIES: name,
      NODE_OPTIONS: '--experimental-vm-modules --no-warnings',
    },
  },
);
process.exit(status ?? 1);
