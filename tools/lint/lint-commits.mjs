import { spawnSync } from 'node:child_process';

/** The last commit before the rules for commit messages began to be checked. */
const BEFORE_RULES = '0605424';

const isKnown = (commit) => spawnSync('git', ['cat-file', '-e', `${commit}^{commit}`]).status === 0;

// A shallow clone has only its newest commits: the newest one is checked there.
const from = isKnown(BEFORE_RULES) ? BEFORE_RULES : isKnown('HEAD~1') ? 'HEAD~1' : undefined;
if (from === undefined) {
  process.stdout.write('commit messages: no commit to compare with, none checked\n');
} else {
  const { status } = spawnSync('npx', ['--no-install', 'commitlint', '--from', from, '--to', 'HEAD'], {
    stdio: 'inherit',
  });
  if (status === 0) process.stdout.write(`commit messages: all since ${from} follow the rules\n`);
  process.exitCode = status ?? 1;
}
