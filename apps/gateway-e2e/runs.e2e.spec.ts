import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RunView } from '@antiphon/contracts/agent';
import type { TestStack } from '@antiphon/testing/stack';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import { antiphon, eventually, readEvents, startWith, twoVendors } from './stack-under-test.js';

jest.setTimeout(240_000);

const EXAMPLE = fileURLToPath(
  new URL('../../examples/workflows/plan-implement-review.yaml', import.meta.url),
);
/** Beside the two vendors' agents: the one that every start without a configuration has. */
const SCRIPTED = `
[[providers]]
name = "scripted"
kind = "scripted"
[[agents]]
id = "main"
name = "Main"
provider = "scripted"
`;

let script: MockScript;
let mock: MockModel;
let stack: TestStack;
beforeAll(async () => {
  mock = await startMockModel((request) => script(request));
  stack = await startWith(twoVendors(mock.url) + SCRIPTED);
});
afterAll(async () => {
  await stack?.stop();
  await mock?.close();
});

const CHAIN = {
  name: 'chain',
  nodes: [
    { id: 'first', agent: 'claude', prompt: 'step one' },
    { id: 'second', agent: 'gpt', needs: ['first'], prompt: 'step two after {{nodes.first.output}}' },
    { id: 'third', agent: 'claude', needs: ['second'], prompt: 'step three after {{nodes.second.output}}' },
  ],
};

const http = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
  const headers = body === undefined ? {} : { 'content-type': 'application/json' };
  const payload = body === undefined ? {} : { body: JSON.stringify(body) };
  const answer = await fetch(`${stack.gatewayUrl}/api/v1${path}`, { method, headers, ...payload });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
};
const show = (id: string) => http<RunView>('GET', `/runs/${id}`);
const start = async (): Promise<string> => (await http<RunView>('POST', '/runs', { workflow: CHAIN })).id;
const completed = (id: string): Promise<RunView> =>
  eventually(
    'the end of the run',
    async () => {
      const run = await show(id).catch(() => undefined);
      return run && !['running', 'cancelling'].includes(run.status) ? run : undefined;
    },
    90_000,
  );

/** The second step's first answer hangs in its middle until whoever asked for it is gone. */
const hangInSecond = (): { readonly reached: Promise<void> } => {
  let arrive: () => void = () => undefined;
  const reached = new Promise<void>((resolve) => (arrive = resolve));
  let hung = false;
  script = ({ user }) => {
    if (hung || !user.startsWith('step two')) return { text: [`<${user}>`] };
    hung = true;
    const call = mock.calls.at(-1);
    return {
      reply: { text: ['half ', 'never'] },
      before: (piece) => {
        if (!piece.includes('never')) return undefined;
        arrive();
        return call?.seen.closed;
      },
    };
  };
  return { reached };
};

const OUTPUTS = [
  '<step one>',
  '<step two after <step one>>',
  '<step three after <step two after <step one>>>',
];

const expectOneTurnEach = async ({ tasks, id }: RunView): Promise<void> => {
  expect(tasks.map(({ output }) => output)).toEqual(OUTPUTS);
  const events = await readEvents(stack, { stream: `run-${id}` });
  expect(events.filter(({ type }) => type === 'TaskCompleted')).toHaveLength(3);
  expect(events.filter(({ type }) => type === 'TaskStarted')).toHaveLength(3);
  for (const { sessionId } of tasks) {
    const turns = await readEvents(stack, { stream: `session-${sessionId}`, type: 'TurnRequested' });
    expect(turns).toHaveLength(1);
  }
};

describe('antiphon run start --watch', () => {
  it('carries the example out, offline, and says what happens', async () => {
    const run = await antiphon(stack, ['run', 'start', EXAMPLE, '--input', 'goal=a parser', '--watch']);
    expect(run.stderr).toBe('');
    expect(run.code).toBe(0);
    expect(run.stdout).toMatch(/plan: completed[^]*implement: completed[^]*review: completed[^]*completed/);
    const listed = await antiphon(stack, ['run', 'list', '--json']);
    const [newest] = (JSON.parse(listed.stdout) as { runs: RunView[] }).runs;
    expect(newest).toMatchObject({ name: 'plan-implement-review', status: 'completed' });
    const shown = await antiphon(stack, ['run', 'show', newest?.id ?? '', '--json']);
    const [plan, implement, review] = (JSON.parse(shown.stdout) as RunView).tasks;
    expect(plan?.output).toContain('Goal: a parser');
    expect(implement?.output).toContain(plan?.output?.trim());
    expect(review?.output).toContain(implement?.output?.trim());
  });

  it('ends with 1 when the run fails, and refuses a cycle with its path', async () => {
    const file = join(stack.home, 'circle.yaml');
    writeFileSync(
      file,
      'name: c\nnodes:\n  - {id: a, agent: main, prompt: x, needs: [b]}\n  - {id: b, agent: main, prompt: x, needs: [a]}\n',
    );
    const validated = await antiphon(stack, ['workflow', 'validate', file]);
    expect([validated.code, validated.stderr]).toEqual([1, expect.stringContaining('a -> b -> a')]);
    const refused = await antiphon(stack, ['run', 'start', file, '--watch', '--json']);
    expect(refused.code).toBe(1);
    expect(JSON.parse(refused.stdout)).toMatchObject({ error: { code: 'WORKFLOW.CYCLE' } });
    const missing = await antiphon(stack, ['run', 'start', 'nowhere.yaml']);
    expect(missing.code).toBe(2);
  });
});

describe('a run in whose middle', () => {
  it('the agent service is killed with -9 completes by itself, each turn once', async () => {
    const { reached } = hangInSecond();
    const id = await start();
    await reached;
    const pid = stack.stackJson().services.agent[0]?.pid ?? 0;
    process.kill(pid, 'SIGKILL');
    const run = await completed(id);
    expect(run.status).toBe('completed');
    await expectOneTurnEach(run);
  });

  it('everything is stopped goes on when everything is started', async () => {
    const { reached } = hangInSecond();
    const id = await start();
    await reached;
    stack = await stack.restart();
    const run = await completed(id);
    expect(run.status).toBe('completed');
    await expectOneTurnEach(run);
  });

  it('everything is stopped and Temporal loses its whole store goes on as well', async () => {
    const { reached } = hangInSecond();
    const id = await start();
    await reached;
    stack = await stack.restart(() => rmSync(join(stack.home, 'temporal'), { recursive: true, force: true }));
    const run = await completed(id);
    expect(run.status).toBe('completed');
    await expectOneTurnEach(run);
  });

  it('leaves a log that the audit accepts', async () => {
    const audit = await antiphon(stack, ['audit']);
    expect([audit.code, audit.stdout.split('\n').at(-2)]).toEqual([0, 'everything holds']);
  });
});

describe('status', () => {
  it('says where Temporal shows its workflows', async () => {
    const { temporalUi } = await http<{ temporalUi: string }>('GET', '/health');
    expect(temporalUi).toBe(stack.stackJson().urls.temporalUi);
    expect((await fetch(temporalUi)).ok).toBe(true);
    expect((await antiphon(stack, ['status'])).stdout).toContain(temporalUi);
  });
});
