import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import { report } from '@antiphon/testing/load';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import { startStack, type TestStack } from '@antiphon/testing/stack';
import { letTimePass, until } from '@antiphon/testing/waits';
import { CANARY_KEY, twoVendorConfig } from './stack-under-test.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LIST = join(ROOT, 'tools/lint/turn-files.txt');
/** Set it to write the list. */
const WRITES = process.env['ANTIPHON_WRITE_TURN_FILES'] === '1';
const SERVICES = ['agent', 'gateway', 'memory', 'metering', 'sandbox'];
const TURNS = 6;
/** Work on a timer may fall into each of the turns by chance. */
const MOST_DIFFERENT = 12;

let folder: string;
let mock: MockModel;
let stack: TestStack;
let client: SocketClient;
let takes = 0;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'antiphon-called-'));
  mock = await startMockModel(() => ({ text: ['well', ' then'] }));
  const preload = pathToFileURL(join(ROOT, 'libs/testing/load/called-functions.mjs'));
  preload.searchParams.set('folder', folder);
  stack = await startStack({
    ...{ config: twoVendorConfig(mock.url), shareDatabase: true, isHosting: false },
    env: { E2E_PROVIDER_KEY: CANARY_KEY, ANTIPHON_NODE_OPTIONS: `--import=${preload.href}` },
    mainFiles: Object.fromEntries(SERVICES.map((name) => [name, join(ROOT, `apps/${name}/dist/main.js`)])),
  });
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await mock?.close();
  rmSync(folder, { recursive: true, force: true });
});

const sendTurn = async (): Promise<void> => {
  const params = { channel: 'files', account: 'spec', peer: 'plain', agent: 'claude', content: 'hello' };
  const frames = await client.stream('chat.send', params).done();
  expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
};

/** Returns the files of which a function was called, in any service, since the last take. */
const takeCalled = async (): Promise<ReadonlySet<string>> => {
  const pids = Object.values(stack.stackJson().services)
    .flat()
    .flatMap(({ pid }) => pid ?? []);
  takes++;
  const files = pids.map((pid) => join(folder, `${pid}-${takes}.json`));
  for (const pid of pids) process.kill(pid, 'SIGUSR2');
  await until(() => files.every((file) => existsSync(file)));
  const urls = files.flatMap((file) => JSON.parse(readFileSync(file, 'utf8')) as string[]);
  return new Set(
    urls.map((url) => relative(ROOT, fileURLToPath(url)).replace('/dist/', '/').replace(/\.js$/, '.ts')),
  );
};

describe('a plain turn', () => {
  it('calls functions of the files of tools/lint/turn-files.txt', async () => {
    for (let turn = 0; turn < 5; turn++) await sendTurn();
    let called: string[] | null = null;
    for (let turn = 0; turn < TURNS; turn++) {
      // Work after the turn before, such as its projections, ends first.
      await letTimePass(2_000);
      await takeCalled();
      await sendTurn();
      const now = await takeCalled();
      called = (called ?? [...now]).filter((file) => now.has(file));
    }
    const files = (called ?? []).sort();
    report(`a plain turn calls functions of ${files.length} files`);
    if (WRITES) writeFileSync(LIST, files.map((file) => `${file}\n`).join(''));
    const listed = readFileSync(LIST, 'utf8').trim().split('\n');
    const different = [
      ...files.filter((file) => !listed.includes(file)).map((file) => `not listed: ${file}`),
      ...listed.filter((file) => !files.includes(file)).map((file) => `not called: ${file}`),
    ];
    for (const line of different) report(line);
    expect(different.length).toBeLessThanOrEqual(MOST_DIFFERENT);
  });
});
