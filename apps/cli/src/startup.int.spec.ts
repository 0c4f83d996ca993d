import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const INSTALLED_NODE = `${ROOT}/node_modules/.bin/node`;
const NODE = existsSync(INSTALLED_NODE) ? INSTALLED_NODE : process.execPath;

// Prints the URL of every module that the process loads, to standard error.
const RECORDER = `data:text/javascript,${encodeURIComponent(`
import { registerHooks } from 'node:module';
import { writeSync } from 'node:fs';
registerHooks({ load: (url, context, next) => (writeSync(2, url + '\\n'), next(url, context)) });
`)}`;

const modulesOf = async (...args: string[]): Promise<{ stdout: string; modules: string[] }> => {
  const { stdout, stderr } = await promisify(execFile)(
    NODE,
    ['--import', RECORDER, `${ROOT}/apps/cli/bin/antiphon.mjs`, ...args],
    // Neither the developer's configuration nor a variable may add to what is loaded.
    { cwd: import.meta.dirname, env: { PATH: process.env['PATH'], HOME: import.meta.dirname } },
  );
  const modules = stderr.split('\n').filter((url) => url.startsWith('file:'));
  return { stdout, modules: modules.map((url) => url.slice(url.indexOf(ROOT) + ROOT.length)) };
};

/** Modules that a command may load before its action runs. Texts of causes import nothing else. */
const LIGHT =
  /^\/?(apps\/cli\/|node_modules\/commander\/|libs\/kernel\/|libs\/contracts\/dist\/log\/(\w+-)?causes\.js$|tools\/\w+\/)/;

describe('the start of the command line', () => {
  it.each([
    { args: ['--help'], shows: 'Exit codes' },
    { args: ['--version'], shows: '0.1.0' },
    { args: ['session', 'replay', '--help'], shows: '--max-iterations' },
    { args: ['audit', '--help'], shows: '--checkpoint' },
  ])('loads only the declarations of commands for $args', async ({ args, shows }) => {
    const { stdout, modules } = await modulesOf(...args);
    expect(stdout).toContain(shows);
    expect(modules.filter((path) => !LIGHT.test(path))).toEqual([]);
    // Commander has 7 modules, the kernel about 25, the declarations about 41, the causes 5.
    expect(modules.length).toBeLessThan(85);
  });

  it('loads no configuration, database, NATS or Temporal library for a command that asks the gateway', async () => {
    const unreachable = modulesOf('status', '--url', 'http://127.0.0.1:1', '--json');
    const { code, stderr } = (await unreachable.catch((error: unknown) => error)) as {
      code: number;
      stderr: string;
    };
    expect(code).toBe(3);
    expect(stderr).not.toMatch(/node_modules\/(zod|pg|@nats-io|@temporalio|toml-eslint-parser)\//);
  });
});
