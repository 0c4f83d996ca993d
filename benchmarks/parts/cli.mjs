import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { summarize } from '../lib/stats.mjs';

const CLI = fileURLToPath(new URL('../../apps/cli/bin/antiphon.mjs', import.meta.url));
const run = promisify(execFile);

const timeOnce = async (args, env) => {
  const started = performance.now();
  await run(process.execPath, args, { env });
  return performance.now() - started;
};

/**
 * Times `antiphon --help` and `antiphon status` in turn with a bare Node, in milliseconds a
 * process.
 */
export const benchCli = async ({ stack, quick }) => {
  const subjects = {
    '`node -e 0`': ['-e', '0'],
    '`antiphon --help`': [CLI, '--help'],
    '`antiphon status`': [CLI, 'status'],
  };
  const samples = Object.fromEntries(Object.keys(subjects).map((name) => [name, []]));
  // The first round fills the compile cache and is not counted.
  for (let round = 0; round <= (quick ? 5 : 25); round += 1)
    for (const [name, args] of Object.entries(subjects)) {
      const ms = await timeOnce(args, stack.env);
      if (round > 0) samples[name].push(ms);
    }
  return Object.entries(samples).map(([subject, all]) => ({ subject, ms: summarize(all) }));
};
