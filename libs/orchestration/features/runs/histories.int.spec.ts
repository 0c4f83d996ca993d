import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import protocol from '@temporalio/proto';
import { ModelFailure } from '@antiphon/providers-domain';
import type { ModelRequest } from '@antiphon/providers-domain';
import { createTestDatabase } from '@antiphon/testing';
import { transient } from '@antiphon/kernel';
import { WORKSPACE, newAddress, submitTo, until } from '@antiphon/agent-features/testing/agent-world';
import { RECORDED_RUNS, RECORDED_TOOLS } from '@antiphon/agent-features/testing/recorded-runs';
import { createRunsWorld } from '@antiphon/agent-features/testing/runs-world';
import type { RunsProcess, RunsWorld } from '@antiphon/agent-features/testing/runs-world';
import { asksFor, hangs, says } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(120_000);

/** Version in the file names of `npm run record:histories`. */
const record = process.env['ANTIPHON_RECORD_HISTORIES'];
const FOLDER = fileURLToPath(new URL('../../../agent/workflows/histories/', import.meta.url));
const codePath = createRequire(import.meta.url).resolve('@antiphon/agent-workflows/bundle');
const { History } = protocol.temporal.api.history.v1;
type History = ReturnType<(typeof History)['fromObject']>;
const fromText = (text: string): History => History.fromObject(JSON.parse(text) as object);
/** Removes worker identities, which name a machine. */
const anonymous = (key: string, value: unknown): unknown => (key === 'identity' ? 'recorded' : value);
const toText = (history: unknown): string => {
  const as = { enums: String, longs: String, bytes: String };
  return JSON.stringify(History.toObject(History.fromObject(history as object), as), anonymous, 1);
};
const recorded = () => readdirSync(FOLDER).filter((name) => name.endsWith('.json'));

describe('the Temporal workflow', () => {
  beforeAll(() => {
    if (!record) Runtime.install({ logger: new DefaultLogger('ERROR'), shutdownSignals: [] });
  });

  it.each([...Object.keys(RECORDED_RUNS), ...Object.keys(RECORDED_TOOLS)])(
    'replays every recorded history: %s',
    async (name) => {
      const files = recorded().filter((file) => file.startsWith(`${name}.`));
      expect(files).not.toEqual([]);
      const histories = files.map((file) => ({
        workflowId: file,
        history: fromText(readFileSync(FOLDER + file, 'utf8')),
      }));
      const replays = Worker.runReplayHistories({ workflowBundle: { codePath } }, histories);
      for await (const { workflowId, error } of replays)
        expect([workflowId, error]).toEqual([workflowId, undefined]);
    },
  );

  it('fails the replay of a history that it would not write', async () => {
    const file = recorded().find((name) => name.startsWith('chain.')) ?? '';
    const history = fromText(readFileSync(FOLDER + file, 'utf8').replaceAll('"runTask"', '"otherTask"'));
    const replays = Worker.runReplayHistories({ workflowBundle: { codePath } }, [
      { workflowId: file, history },
    ]);
    for await (const { error } of replays) expect(error?.name).toBe('DeterminismViolationError');
  });
});

/* Recorded by `npm run record:histories`, next to those of older versions, which must replay too. */
const recording = (): void => {
  let world: RunsWorld;
  let agent: RunsProcess;
  beforeAll(async () => {
    world = await createRunsWorld(
      await createTestDatabase(),
      process.env['ANTIPHON_TEST_NATS_URL'] ?? '',
      process.env['ANTIPHON_TEST_TEMPORAL_ADDRESS'] ?? '',
    );
    agent = world.process();
    await until(() => agent.worker.isPolling(), 30_000);
  });
  afterAll(() => world?.close());

  const asked = ({ messages }: ModelRequest): string =>
    messages.flatMap((message) => (message.role === 'user' ? [message.text] : [])).at(-1) ?? '';
  const refuse = () =>
    new ModelFailure({ reason: 'provider_error', message: 'no', dispatched: true, retryable: false });

  it.each(Object.entries(RECORDED_RUNS))('a %s run', async (name, { source, cancel }) => {
    let begun: () => void = () => undefined;
    const atWork = new Promise<void>((resolve) => (begun = resolve));
    let failures = 0;
    world.agents.model.reply = async (request, sink, call) => {
      begun();
      const prompt = asked(request);
      if (prompt === 'fails always' || (prompt === 'fails once' && failures++ === 0)) throw refuse();
      return prompt === 'hangs' ? hangs()(request, sink, call) : says(prompt);
    };
    const runId = await world.start(agent, source);
    if (cancel) {
      await atWork;
      await until(async () => (await world.view(agent, runId)).tasks[0]?.status === 'running');
      await agent.cancelRun.handle({ workspace: WORKSPACE, caller: 'spec', runId });
    }
    await world.ended(agent, runId);
    await keep(name, `run/${runId}`);
  });

  it.each(Object.entries(RECORDED_TOOLS))('a tool call: %s', async (name, ends) => {
    const left = [...ends];
    const { responders, model } = world.agents;
    const answer = responders.tool;
    responders.tool = async (request) => {
      const end = left.shift();
      if (end === 'lost') throw transient('SANDBOX.LOST', 'the sandbox stopped during the call');
      const failed = {
        outcome: 'failed',
        code: 'TOOL.UNAVAILABLE',
        message: 'no cell',
        durationMs: 1,
      } as const;
      return end === 'unavailable' ? failed : answer(request);
    };
    model.reply = async ({ messages }) =>
      messages.at(-1)?.role === 'tool' ? says('done') : asksFor({ name: 'echo' });
    const { sessionId } = await submitTo(agent, { address: newAddress() });
    const events = await world.agents.ended(sessionId);
    responders.tool = answer;
    const { data } = events.find(({ type }) => type === 'ToolCallRequested') ?? {};
    await keep(name, `tool/${String(data?.['callId'])}`);
  });

  const keep = async (name: string, workflowId: string): Promise<void> => {
    const handle = world.temporal.workflow.getHandle(workflowId);
    await handle.result();
    const history = toText(await handle.fetchHistory());
    mkdirSync(FOLDER, { recursive: true });
    writeFileSync(`${FOLDER}${name}.${record}.json`, `${history}\n`);
  };
};
if (record) describe('recording', recording);
