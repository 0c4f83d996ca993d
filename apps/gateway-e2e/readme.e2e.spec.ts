import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, textOf } from '@antiphon/testing/client';
import { waitForAccepted, type CliRun } from './stack-under-test.js';

jest.setTimeout(180_000);

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SECTION = '## The first ten minutes';
const README_PORT = '127.0.0.1:7400';

interface CodeBlock {
  readonly language: string;
  readonly code: string;
}

const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
const section = readme.slice(readme.indexOf(SECTION)).split(/^## /m)[1] ?? '';
const blocks: readonly CodeBlock[] = [...section.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(
  ([, language = '', code = '']) => ({ language, code }),
);
const onlyBlock = (language: string): string => {
  const found = blocks.filter((block) => block.language === language);
  expect(found).toHaveLength(1);
  return found[0]?.code ?? '';
};
/** Command lines of all `sh` blocks, in order, without their comments. */
const shellLines = blocks
  .filter(({ language }) => language === 'sh')
  .flatMap(({ code }) => code.split('\n'))
  .map((line) => line.replace(/\s+#.*$/, '').trim())
  .filter(Boolean);

const folder = mkdtempSync(join(tmpdir(), 'antiphon-readme-'));
/** A home of its own, no provider's key and no engine of this machine: the reader's environment. */
const env = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) =>
        !/_API_KEY$|^ANTIPHON_(?!CACHE|POSTGRES_BIN|NATS_SERVER|TEMPORAL$|TEST_RUN$)|^npm_|^NODE_/.test(name),
    ),
  ),
  ANTIPHON_HOME: join(folder, 'home'),
};

/** Runs a line of the README in the clone, as its reader does. */
const shell = (line: string, more: Readonly<Record<string, string>> = {}): Promise<CliRun> =>
  new Promise((resolve) => {
    execFile('sh', ['-c', line], { cwd: ROOT, env: { ...env, ...more } }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? 1) : 0, stdout, stderr }),
    );
  });

/** Output that each command of the section must print; a new command needs a row. */
const EXPECTED: readonly (readonly [line: string, output: RegExp])[] = [
  ['npm start -- --detach', /ready/],
  ['npx antiphon status', /: ok, up .*\nprovider {4}scripted/],
  ['npx antiphon chat "Hello there"', /^\[scripted\] Hello there$/m],
  [
    `npx antiphon chat '/tool calculator {"expression":"19+23"}'`,
    /\[calculator \{"expression":"19\+23"\}\]\n\[= 42\]/,
  ],
  ['npx antiphon events list', /TurnCompleted/],
  ['npx antiphon audit', /^everything holds$/m],
  [
    'npx antiphon run start examples/workflows/plan-implement-review.yaml --watch',
    /plan-implement-review: completed/,
  ],
  [
    'npx antiphon agent spawn Researcher --id researcher --capabilities research --project website',
    /^researcher \(Researcher\): idle$/m,
  ],
  [
    'npx antiphon task create "Collect facts about tide tables." --capabilities research --watch',
    /assigned to agent\/researcher, claim 1\n[^]*completed\n/,
  ],
  ['npx antiphon agent pause researcher --reason "enough for today"', /^researcher: paused$/m],
  ['npx antiphon agent terminate researcher', /^researcher: terminated$/m],
  ['npx antiphon agent history researcher', /idle -> paused .* enough for today$/m],
];

const gatewayUrl = (): string => {
  const stack = JSON.parse(readFileSync(join(env.ANTIPHON_HOME, 'stack.json'), 'utf8')) as {
    urls: { gateway: string };
  };
  return stack.urls.gateway;
};
const wsUrl = (): string => `${gatewayUrl().replace('http', 'ws')}/ws`;

const runLine = async (line: string): Promise<void> => {
  const expected = EXPECTED.find(([known]) => known === line)?.[1];
  const { code, stdout, stderr } = await shell(line);
  expect([line, code, code === 0 ? '' : stderr]).toEqual([line, 0, '']);
  expect(stdout).toMatch(expected ?? /$^/);
};

/**
 * Runs the program until it has printed a frame whose event is `done`, and returns what it printed.
 */
const runProgram = (code: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn('node', ['--input-type=module', '-e', code], { cwd: ROOT, env });
    let printed = '';
    child.stderr.on('data', (data) => reject(new Error(String(data))));
    child.stdout.on('data', (data) => {
      printed += String(data);
      if (!printed.includes('"event":"done"')) return;
      child.kill();
      resolve(printed);
    });
  });

afterAll(async () => {
  await shell('npm stop');
  rmSync(folder, { recursive: true, force: true });
});

describe("the README's first ten minutes", () => {
  it('has an expected output for each of its commands', () =>
    expect(shellLines).toEqual(EXPECTED.map(([line]) => line)));

  // The audit closes the steps on the shell; the workflow's command follows the program and the
  // file.
  const before = shellLines.slice(0, shellLines.indexOf('npx antiphon audit') + 1);
  it.each(before)('%s', runLine);

  it('connects the program over a WebSocket and resumes its stream at an offset', async () => {
    const program = onlyBlock('js');
    expect(program).toContain(README_PORT);
    const printed = await runProgram(program.replace(README_PORT, new URL(gatewayUrl()).host));
    const frames = printed
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { event?: string; data: unknown; offset: number })
      .filter(({ event }) => event !== undefined);
    expect(frames.map(({ event }) => event)).toEqual([
      ...['accepted', ...frames.slice(1, -2).map(() => 'text'), 'usage', 'done'],
    ]);
    const { sessionId } = frames[0]?.data as { sessionId: string };
    const client = await connectClient(wsUrl());
    const resumed = await client.stream('session.resume', { sessionId, after: frames[1]?.offset }).done();
    await client.close();
    const rest = frames.slice(2).map(({ event, data, offset }) => ({ event, data, offset }));
    expect(resumed).toMatchObject(rest);
  });

  it('accepts the configuration file', async () => {
    const file = join(folder, 'antiphon.toml');
    writeFileSync(file, onlyBlock('toml'));
    const { code, stdout } = await shell('npx antiphon config check', { ANTIPHON_CONFIG: file });
    expect([code, stdout]).toEqual([0, expect.stringContaining(`${file}: ok, 1 agents`)]);
  });

  it.each(shellLines.slice(before.length))('%s', runLine);

  it('completes the same turn once after a kill -9 of the agent service', async () => {
    const { stdout: status } = await shell('npx antiphon status');
    const pid = Number(/^ {2}agent .* pid (\d+)$/m.exec(status)?.[1]);
    const content = 'word '.repeat(8_000).trim();
    const client = await connectClient(wsUrl());
    const stream = client.stream('chat.send', { channel: 'docs', account: 'me', peer: 'kill', content });
    const { turnId } = await waitForAccepted(stream);
    await stream.waitFor('the first text', ({ event }) => event === 'text');
    process.kill(pid, 'SIGKILL');
    const frames = await stream.done();
    await client.close();
    // The echo of 40 kB is longer than an answer may be.
    expect(frames.filter(({ event }) => event === 'done').map(({ data }) => data)).toEqual([
      { turnId, status: 'completed', cut_by: 'length' },
    ]);
    expect(textOf(frames)).toContain(content.slice(-200));
    const { stdout } = await shell('npx antiphon audit');
    expect(stdout).toMatch(/^everything holds$/m);
  });
});
