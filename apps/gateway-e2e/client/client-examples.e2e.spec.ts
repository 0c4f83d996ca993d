import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startStack, type TestStack } from '@antiphon/testing/stack';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const NODE = `${ROOT}/node_modules/.bin/node`;

let stack: TestStack;
beforeAll(async () => {
  stack = await startStack();
}, 120_000);
afterAll(() => stack?.stop());

const run = async (example: string, ...args: string[]): Promise<string> => {
  const { PATH } = process.env;
  const env = { PATH, ANTIPHON_URL: stack.gatewayUrl };
  const { stdout, stderr } = await promisify(execFile)(NODE, [`examples/${example}`, ...args], {
    cwd: ROOT,
    env,
    timeout: 60_000,
  });
  expect(stderr).toBe('');
  return stdout;
};

describe('the examples of the client library', () => {
  it('print an answer while it arrives, and the agents', async () => {
    expect(await run('client-chat.ts', 'Hello there')).toMatch(
      /\[scripted\] Hello there\n\d+ characters; agents: /,
    );
  });

  it('print the events up to the end of that turn', async () => {
    const lines = (await run('client-events.ts')).trim().split('\n');
    expect(lines.at(-1)).toMatch(/^\d+ TurnCompleted \(continue from [\w-]+\)$/);
    expect(lines.map((line) => line.split(' ')[1])).toEqual(
      expect.arrayContaining(['SessionStarted', 'TurnRequested', 'ModelCallCompleted']),
    );
  });
});
