import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { installPackages, isInstalled } from './install.mjs';
import { createProgress } from './progress.mjs';

/** Stands in for npm: does what the test's script says, and counts how often it is asked. */
const FAKE_NPM = `const fs = require('node:fs');
if (process.argv[2] === 'ping') {
  if (!fs.existsSync('no-network')) process.exit(0);
  console.error('npm error request to https://registry/-/ping failed, reason: getaddrinfo EAI_AGAIN registry');
  process.exit(1);
}
fs.appendFileSync('npm-calls', process.argv.slice(2).join(' ') + '\\n');
const say = (text, code) => { console.error(text); process.exit(code); };
eval(fs.readFileSync('npm-script', 'utf8'));
fs.rmSync('node_modules', { recursive: true, force: true });
fs.mkdirSync('node_modules/.bin', { recursive: true });
fs.writeFileSync('node_modules/.bin/node', '');
fs.copyFileSync('package-lock.json', 'node_modules/.package-lock.json');`;

const lockOf = (version: string): string =>
  JSON.stringify({
    packages: {
      '': { name: 'x' },
      'node_modules/a': { version, integrity: `sha512-${version}` },
      'node_modules/only-elsewhere': { version: '1.0.0', optional: true },
    },
  });

describe('installPackages', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'antiphon install '));
    writeFileSync(join(root, 'npm-cli.js'), FAKE_NPM);
    writeFileSync(join(root, 'npm-script'), '');
    writeFileSync(join(root, 'package-lock.json'), lockOf('1.0.0'));
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  const install = () => {
    const env = { ...process.env, NODE_OPTIONS: '', npm_execpath: join(root, 'npm-cli.js') };
    return installPackages(
      { root, env },
      createProgress(() => undefined),
    );
  };
  const calls = (): number =>
    existsSync(join(root, 'npm-calls'))
      ? readFileSync(join(root, 'npm-calls'), 'utf8').trim().split('\n').length
      : 0;
  const npmDoes = (script: string): void => writeFileSync(join(root, 'npm-script'), script);

  it('runs `npm ci` without install scripts once, and again when the lock changes', async () => {
    await install();
    await install();
    expect(readFileSync(join(root, 'npm-calls'), 'utf8')).toMatch(/^ci --ignore-scripts .*\n$/);
    writeFileSync(join(root, 'package-lock.json'), lockOf('1.0.1'));
    await install();
    expect(calls()).toBe(2);
  });

  it('skips the install where npm has installed the same packages', () => {
    mkdirSync(join(root, 'node_modules', '.bin'), { recursive: true });
    writeFileSync(join(root, 'node_modules', '.bin', 'node'), '');
    const installed = JSON.parse(lockOf('1.0.0')) as { packages: Record<string, unknown> };
    delete installed.packages['node_modules/only-elsewhere'];
    const record = join(root, 'node_modules', '.package-lock.json');
    writeFileSync(record, JSON.stringify(installed));
    expect(isInstalled(root)).toBe(true);
    writeFileSync(join(root, 'package-lock.json'), lockOf('2.0.0'));
    expect(isInstalled(root)).toBe(false);
  });

  it('repeats an install that was killed', async () => {
    mkdirSync(join(root, 'node_modules', 'a'), { recursive: true });
    await install();
    expect(calls()).toBe(1);
    expect(isInstalled(root)).toBe(true);
  });

  it('installs from an empty folder when npm fails on a killed install’s files', async () => {
    mkdirSync(join(root, 'node_modules', 'a'), { recursive: true });
    npmDoes(`if (fs.existsSync('node_modules/a')) say('npm error code ENOTEMPTY\\nnpm error rename', 190);`);
    await install();
    expect(calls()).toBe(2);
  });

  it('installs from npm’s cache without a network', async () => {
    writeFileSync(join(root, 'no-network'), '');
    await install();
    expect(readFileSync(join(root, 'npm-calls'), 'utf8')).toContain('--offline');
  });

  it('reports the missing network when the cache is incomplete', async () => {
    writeFileSync(join(root, 'no-network'), '');
    npmDoes(`say('npm error code ENOTCACHED\\nnpm error cache mode is only-if-cached', 1);`);
    await expect(install()).rejects.toThrow(
      /registry cannot be reached \(request to .* failed, reason: getaddrinfo EAI_AGAIN registry\)\.\nWhat to do: /,
    );
    expect(calls()).toBe(1);
  });

  it.each([
    [
      'npm error code ENOTFOUND\\nnpm error network request to the registry failed, reason: getaddrinfo ENOTFOUND',
      /the npm packages are not installed, and npm's registry cannot be reached \(.*ENOTFOUND\)\.\nWhat to do: /,
    ],
    [
      'npm error code ENOSPC\\nnpm error nospc no space left on device, write',
      /the disk that holds .* is full/,
    ],
    [
      'npm error code EUSAGE\\nnpm error Missing: b@1 from lock file\\n',
      /could not be installed; npm says:\nnpm error code EUSAGE\nnpm error Missing: b@1/,
    ],
  ])('says what is wrong: %s', async (words, message) => {
    npmDoes(`say('${words}', 1);`);
    await expect(install()).rejects.toThrow(message);
    expect(isInstalled(root)).toBe(false);
  });
});
