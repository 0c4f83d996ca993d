import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

const run = promisify(execFile);
const HERE = import.meta.dirname;

interface Scenarios {
  readonly package: string;
  readonly pass: readonly string[];
  readonly notBuilt: Readonly<Record<string, readonly string[]>>;
}

describe('the conformance suite of MCP for clients', () => {
  let folder: string;
  let scenarios: Scenarios;
  const suite = (...args: string[]) => {
    const program = join(folder, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
    return run(process.execPath, [program, ...args], { cwd: folder, timeout: 120_000 });
  };

  beforeAll(async () => {
    scenarios = JSON.parse(await readFile(join(HERE, 'testing/conformance.json'), 'utf8')) as Scenarios;
    folder = await mkdtemp(join(tmpdir(), 'antiphon-conformance-'));
    await writeFile(join(folder, 'package.json'), '{ "private": true }');
    await run('npm', ['install', '--no-audit', '--no-fund', scenarios.package], { cwd: folder });
  }, 300_000);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('has no scenario that is not in the list of this project', async () => {
    const { stdout } = await suite('list', '--client');
    const names = [...stdout.matchAll(/^ {2}- (\S+)/gm)].map(([, name]) => name);
    const known = [...scenarios.pass, ...Object.values(scenarios.notBuilt).flat()];
    expect(names.sort()).toEqual([...known].sort());
  });

  it('passes in the scenarios outside of elicitation and OAuth', async () => {
    const client = join(HERE, 'testing/conformance-client.mjs');
    const command = [process.execPath, client].map((part) => JSON.stringify(part)).join(' ');
    for (const scenario of scenarios.pass) {
      const { stderr } = await suite('client', '--command', command, '--scenario', scenario);
      expect(stderr).toContain('OVERALL: PASSED');
    }
  });
});
