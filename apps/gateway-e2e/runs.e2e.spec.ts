import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RunView } from '@antiphon/contracts/agent';
import type { TestStack } from '@antiphon/testing/stack';
import { Client, Connection } from '@temporalio/client';
import pg from 'pg';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import { runCli, waitForValue, readEvents, startQuickStack, twoVendorConfig } from './stack-under-test.js';

jest.setTimeout(240_000);

const EXAMPLE = fileURLToPath(
  new URL('../../examples/workflows/plan-implement-review.yaml', import.meta.url),
);
/** Configures the scripted agent that a start without a configuration has. */
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
  stack = await startQuickStack(twoVendorConfig(mock.url) + SCRIPTED);
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
  waitForValue(
    'the end of the run',
    async () => {
      const run = await show(id).catch(() => undefined);
      return run && !['running', 'cancelling'].includes(run.status) ? run : undefined;
    },
    90_000,
  );

/** Makes the first reply of the second step hang until the connection of its agent is closed. */
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
  it('runs the example offline, and prints the progress of its tasks', async () => {
    const run = await runCli(stack, ['run', 'start', EXAMPLE, '--input', 'goal=a parser', '--watch']);
    expect(run.stderr).toBe('');
    expect(run.code).toBe(0);
    expect(run.stdout).toMatch(/plan: completed[^]*implement: completed[^]*review: completed[^]*completed/);
    const listed = await runCli(stack, ['run', 'list', '--json']);
    const [newest] = (JSON.parse(listed.stdout) as { runs: RunView[] }).runs;
    expect(newest).toMatchObject({ name: 'plan-implement-review', status: 'completed' });
    const shown = await runCli(stack, ['run', 'show', newest?.id ?? '', '--json']);
    const [plan, implement, review] = (JSON.parse(shown.stdout) as RunView).tasks;
    expect(plan?.output).toContain('Goal: a parser');
    expect(implement?.output).toContain(plan?.output?.trim());
    expect(review?.output).toContain(implement?.output?.trim());
  });

  it('exits with 1 for a workflow with a cycle, and names the path of the cycle', async () => {
    const file = join(stack.home, 'circle.yaml');
    writeFileSync(
      file,
      'name: c\nnodes:\n  - {id: a, agent: main, prompt: x, needs: [b]}\n  - {id: b, agent: main, prompt: x, needs: [a]}\n',
    );
    const validated = await runCli(stack, ['workflow', 'validate', file]);
    expect([validated.code, validated.stderr]).toEqual([1, expect.stringContaining('a -> b -> a')]);
    const refused = await runCli(stack, ['run', 'start', file, '--watch', '--json']);
    expect(refused.code).toBe(1);
    expect(JSON.parse(refused.stdout)).toMatchObject({ error: { code: 'WORKFLOW.CYCLE' } });
    const missing = await runCli(stack, ['run', 'start', 'nowhere.yaml']);
    expect(missing.code).toBe(2);
  });
});

// @shows C9
describe('/api/v1/workflows', () => {
  const request = async (
    method: string,
    path: string,
    body?: string,
    headers: Record<string, string> = {},
  ) => {
    const answer = await fetch(`${stack.gatewayUrl}/api/v1/workflows${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    });
    const text = await answer.text();
    return { status: answer.status, body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> };
  };
  const json = { 'content-type': 'application/json' };
  const yaml = { 'content-type': 'application/yaml' };
  const YAML = 'name: stored\nnodes:\n  - {id: a, agent: main, prompt: hi}\n';

  // @shows C10 C11
  it('stores, shows, validates, starts and deletes a definition', async () => {
    const key = { ...yaml, 'idempotency-key': 'stored-1' };
    const made = await request('POST', '', YAML, key);
    expect([made.status, made.body['status'], made.body['order']]).toEqual([201, 'ready', ['a']]);
    const id = String(made.body['id']);
    expect((await request('POST', '', YAML, key)).body['id']).toBe(id);
    expect((await request('POST', '', YAML.replace('stored', 'other'), key)).status).toBe(409);
    const next = JSON.stringify({ name: 'stored', nodes: [{ id: 'b', agent: 'main', prompt: 'ho' }] });
    expect((await request('PUT', `/${id}`, next, json)).body).toMatchObject({ version: 2, order: ['b'] });
    expect((await request('POST', `/${id}/validate`)).body['status']).toBe('ready');
    const started = await request('POST', `/${id}/start`, '{}', json);
    expect(started.status).toBe(202);
    const run = await completed(String(started.body['id']));
    expect([run.status, run.workflowVersion]).toEqual(['completed', 2]);
    expect((await request('GET', `/${id}`)).body).toMatchObject({ status: 'completed', lastRunId: run.id });
    expect((await request('DELETE', `/${id}`)).status).toBe(204);
    expect((await request('GET', `/${id}`)).status).toBe(404);
  });

  it.each([
    ['a cycle', yaml, 'name: c\nnodes: [{id: a, agent: main, prompt: x, needs: [a]}]', 422, 'WORKFLOW.CYCLE'],
    [
      'an unknown agent',
      yaml,
      'name: c\nnodes: [{id: a, agent: no, prompt: x}]',
      422,
      'WORKFLOW.UNKNOWN_AGENT',
    ],
    ['text that is no YAML', yaml, 'name: [', 400, 'WORKFLOW.INVALID'],
    ['text that is no JSON', json, '{', 400, 'HTTP.MALFORMED'],
    ['no definition', json, '{"name":"x"}', 400, 'WORKFLOW.INVALID'],
    ['another type', json, '[1]', 400, 'GATEWAY.INVALID_BODY'],
    ['depth', json, `{"a":${'['.repeat(9_000)}${']'.repeat(9_000)}}`, 400, 'GATEWAY.INVALID_BODY'],
  ])('rejects %s', async (_, headers, body, status, code) =>
    expect(await request('POST', '', body, headers)).toMatchObject({ status, body: { code } }),
  );

  it('rejects an invalid id', async () => {
    expect((await request('GET', '/nonsense')).status).toBe(400);
    expect((await request('POST', '/00000000-0000-4000-8000-000000000000/start')).status).toBe(404);
  });
});

describe('an open run', () => {
  it('completes by itself after kill -9 of the agent, with each turn once', async () => {
    const { reached } = hangInSecond();
    const id = await start();
    await reached;
    const pid = stack.stackJson().services.agent[0]?.pid ?? 0;
    process.kill(pid, 'SIGKILL');
    const run = await completed(id);
    expect(run.status).toBe('completed');
    await expectOneTurnEach(run);
  });

  // @shows G14
  it('continues after a stop and a start of the whole stack', async () => {
    const { reached } = hangInSecond();
    const id = await start();
    await reached;
    stack = await stack.restart();
    const run = await completed(id);
    expect(run.status).toBe('completed');
    await expectOneTurnEach(run);
  });

  it('continues after a restart in which Temporal lost its store', async () => {
    const { reached } = hangInSecond();
    const id = await start();
    await reached;
    stack = await stack.restart(() => rmSync(join(stack.home, 'temporal'), { recursive: true, force: true }));
    const run = await completed(id);
    expect(run.status).toBe('completed');
    await expectOneTurnEach(run);
  });

  it('leaves a log that passes the audit', async () => {
    const audit = await runCli(stack, ['audit']);
    expect([audit.code, audit.stdout.split('\n').at(-2)]).toEqual([0, 'everything holds']);
  });

  it('leaves after 30 days to archives in the home, which the audit reads', async () => {
    const database = new pg.Client({ connectionString: stack.databaseUrl });
    await database.connect();
    await database.query(`set session_replication_role = replica;
      update events set recorded_at = recorded_at - interval '31 days'`);
    await database.end();
    const connection = await Connection.connect({ address: stack.temporalAddress });
    const { schedule } = new Client({ connection, namespace: 'antiphon' });
    await schedule.getHandle('antiphon/archive-old-events').trigger();
    await connection.close();
    const folder = join(stack.home, 'archives');
    const archives = await waitForValue('an archived file', async () => {
      const { archives } = await http<{ archives: { state: string; events: number }[] }>('GET', '/archives');
      return archives.length > 0 ? archives : undefined;
    });
    expect(archives[0]).toMatchObject({ state: 'intact' });
    expect(readdirSync(folder)).not.toEqual([]);
    // The audit reads the archive. It names the dates that this spec changed, and nothing else.
    const { checks } = JSON.parse((await runCli(stack, ['audit', '--json'])).stdout) as {
      readonly checks: readonly { readonly name: string; readonly violations: number }[];
    };
    const broken = checks.filter(({ violations }) => violations > 0).map(({ name }) => name);
    expect(broken).toContain('signed-roots-match');
    const isOfDates = (name: string): boolean =>
      /^(signed-roots-match$|projection-equals-the-log:)/.test(name);
    expect(broken.filter((name) => !isOfDates(name))).toEqual([]);
  });
});

describe('status', () => {
  it('shows the address of Temporal’s web page', async () => {
    const { temporalUi } = await http<{ temporalUi: string }>('GET', '/health');
    expect(temporalUi).toBe(stack.stackJson().urls.temporalUi);
    expect((await fetch(temporalUi)).ok).toBe(true);
    expect((await runCli(stack, ['status'])).stdout).toContain(temporalUi);
    const { runs } = await http<{ runs: RunView[] }>('GET', '/runs?limit=1');
    const query = `WorkflowId = "run/${runs[0]?.id}" and AntiphonWorkspace = "default"`;
    // The request that the page sends for a search.
    const found = await fetch(
      `${temporalUi}/api/v1/namespaces/antiphon/workflows?query=${encodeURIComponent(query)}`,
    );
    const { executions } = (await found.json()) as { executions: { execution: { workflowId: string } }[] };
    expect(executions.map(({ execution }) => execution.workflowId)).toEqual([`run/${runs[0]?.id}`]);
  });
});
