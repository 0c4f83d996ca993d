import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import os from 'node:os';

const versionOf = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')).version;

/** Files that a measurement writes: they do not change what is measured. */
const RESULTS = [':(top)', ':(top,exclude)benchmarks/RESULTS.md', ':(top,exclude)docs/kill-table.md'];
const MORE_RESULTS = ':(top,exclude)benchmarks/kill-table/results.json';

const commit = () => {
  try {
    const git = (...args) =>
      execFileSync('git', args, { cwd: new URL('.', import.meta.url), encoding: 'utf8' }).trim();
    return `${git('rev-parse', '--short', 'HEAD')}${git('status', '--porcelain', '--', ...RESULTS, MORE_RESULTS) === '' ? '' : ' with changes'}`;
  } catch {
    return 'unknown';
  }
};

/** Describes the machine that the figures depend on. */
export const describeMachine = () => ({
  cpu: `${os.cpus().length} × ${os.cpus()[0]?.model.trim() ?? 'unknown'}`,
  memory: `${(os.totalmem() / 2 ** 30).toFixed(1)} GiB`,
  system: `${os.type()} ${os.release()} ${os.arch()}`,
  node: process.version,
  commit: commit(),
  date: new Date().toISOString().slice(0, 10),
});

const PEERS = [
  '@restatedev/restate-server',
  '@restatedev/restate-sdk',
  '@dbos-inc/dbos-sdk',
  'langchain',
  '@langchain/langgraph',
  '@langchain/langgraph-checkpoint-postgres',
  '@langchain/openai',
  '@mastra/core',
  '@mastra/memory',
  '@mastra/pg',
  'ai',
  '@event-driven-io/emmett-postgresql',
  'pg',
];

export const versionsOf = (names) =>
  Object.fromEntries(names.map((name) => [name, versionOf(`../node_modules/${name}/package.json`)]));

export const describePeers = () => versionsOf(PEERS);
