import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';

it.each([
  ['start.cjs', 'npm start -- --detach --scale gateway=3,agent=2'],
  ['stop.cjs', 'npm stop'],
  ['setup.cjs', 'npm run setup'],
])('%s --help prints its use with an example, and starts nothing', (script, example) => {
  const home = mkdtempSync(join(tmpdir(), 'antiphon-help-'));
  try {
    for (const flag of ['--help', '-h']) {
      const { status, stdout } = spawnSync(process.execPath, [join(import.meta.dirname, script), flag], {
        ...{ encoding: 'utf8', env: { ...process.env, ANTIPHON_HOME: home } },
      });
      expect({ status, hasExample: stdout.includes(`\n  ${example}`) }).toEqual({
        status: 0,
        hasExample: true,
      });
    }
    expect(readdirSync(home)).toEqual([]);
  } finally {
    rmSync(home, { recursive: true });
  }
});
