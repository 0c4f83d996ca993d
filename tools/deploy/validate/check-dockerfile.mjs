import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { problem } from './problem.mjs';

const FILE = 'deploy/Dockerfile';

/** Instructions of the last stage, with continued lines joined. */
const lastStage = (text) => {
  const lines = text
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .join('\n')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  return lines.slice(lines.findLastIndex((line) => line.startsWith('FROM ')) + 1);
};

const RULES = [
  [
    (lines) => lines.some((line) => /^USER [1-9]\d*(:[1-9]\d*)?$/.test(line)),
    'the last stage names no user by number other than root',
  ],
  [
    (lines) => lines.some((line) => /^HEALTHCHECK .*CMD \["node", "\/app\/healthcheck\.mjs"\]/.test(line)),
    'the last stage has no health check by node itself',
  ],
  [
    (lines) =>
      lines
        .filter((line) => line.startsWith('COPY '))
        .every((line) => line === 'COPY --from=stage /staged /app'),
    'the last stage copies something that tools/deploy/stage has not staged',
  ],
  [
    (lines) => !lines.some((line) => /\b(apt|apt-get|apk|npm (ci|install)|gcc|make)\b/.test(line)),
    'the last stage installs or compiles something',
  ],
  [
    (lines) => lines.some((line) => /^(CMD|ENTRYPOINT) \[/.test(line)),
    'the last stage starts through a shell, which swallows SIGTERM',
  ],
];

/** There is no builder here: only what can be read in the file. */
export const checkDockerfile = (root) => {
  const lines = lastStage(readFileSync(join(root, FILE), 'utf8'));
  return RULES.filter(([holds]) => !holds(lines)).map(([, message]) => problem(FILE, message));
};
