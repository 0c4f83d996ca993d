import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { AgentSpec, MessageSpec, TaskSpec } from '@antiphon/contracts/agent';
import { agentSpecOf } from './agent.command.js';
import { parseAgentText } from './agent-file.js';
import { confirmEnd } from './confirm-end.js';
import { parseBudget, renderTable } from './agent-views.js';
import { messageOf } from './message.command.js';
import { tasksToCancel } from './task.command.js';
import { taskSpecOf } from './task-spec.js';

const usage = (message: string) => ({
  code: 'CLI.USAGE',
  message: expect.stringContaining(message) as unknown,
});
/** Removes absent fields, as JSON does. */
const asSent = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
const caught = (action: () => unknown): unknown => {
  try {
    action();
  } catch (error) {
    return error;
  }
  return undefined;
};

describe('antiphon agent spawn', () => {
  const TOML = `
name = "Researcher"
system_prompt = "You collect facts."
capabilities = ["research"]
[budget]
micro_usd = 500000
[identity]
soul = "Curious."
`;
  const YAML = `
name: Researcher
systemPrompt: You collect facts.
capabilities: [research]
budget: { microUsd: 500000 }
identity: { soul: Curious. }
`;
  const EXPECTED = {
    name: 'Researcher',
    systemPrompt: 'You collect facts.',
    capabilities: ['research'],
    budget: { microUsd: 500_000 },
    identity: { soul: 'Curious.' },
  };

  it.each([
    ['agent.toml', TOML],
    ['agent.yaml', YAML],
    ['agent.yml', YAML],
    ['agent.json', JSON.stringify(EXPECTED)],
  ])('reads the same definition from %s, which the contract accepts', async (file, text) => {
    const spec = await parseAgentText(file, text);
    expect(spec).toEqual(EXPECTED);
    expect(AgentSpec.safeParse(spec).error).toBeUndefined();
  });

  it('accepts the example of the repository', async () => {
    const file = new URL('../../../../examples/agents/researcher.toml', import.meta.url);
    const spec = await parseAgentText(file.pathname, readFileSync(file, 'utf8'));
    expect(AgentSpec.safeParse(spec).error).toBeUndefined();
    expect(spec).toMatchObject({ maxIterations: 8, limits: { size: 8 }, budget: { microUsd: 500_000 } });
  });

  it('lets options win over the file', () => {
    const options = {
      capabilities: 'research, summary',
      model: 'm2',
      queue: true,
      maxAgents: '4',
      budgetUsd: '0.25',
    };
    const spec = agentSpecOf({ ...EXPECTED, model: 'm1' }, 'Ada', options);
    expect(spec).toMatchObject({
      name: 'Ada',
      model: 'm2',
      capabilities: ['research', 'summary'],
      whenFull: 'queue',
      limits: { size: 4 },
      budget: { microUsd: 250_000 },
      systemPrompt: 'You collect facts.',
    });
    expect(AgentSpec.safeParse(spec).error).toBeUndefined();
  });

  it.each([
    ['agent.ini', 'a=1', 'expected a file that ends in'],
    ['agent.toml', 'name = ', 'agent.toml is not valid'],
    ['agent.json', '[1]', 'expected the fields of an agent'],
  ])('refuses %s with %j as bad usage', (file, text, message) =>
    expect(parseAgentText(file, text)).rejects.toMatchObject(usage(message)),
  );

  it('refuses an agent without a name and options that are no numbers', () => {
    expect(caught(() => agentSpecOf({}, undefined, {}))).toMatchObject(usage('needs a name'));
    expect(caught(() => agentSpecOf({}, 'a', { maxIterations: 'ten' }))).toMatchObject(
      usage('--max-iterations ten: expected a whole number'),
    );
    expect(caught(() => parseBudget({ budgetUsd: 'much' }))).toMatchObject(usage('--budget-usd much'));
  });
});

describe('antiphon agent terminate', () => {
  const configured = { id: 'main', origin: 'configuration', state: 'idle' } as const;

  it('needs --yes for an agent of the configuration, which stays terminated, or asks at a terminal', async () => {
    await expect(confirmEnd(configured, null)).rejects.toMatchObject(usage('stays terminated'));
    const questions: string[] = [];
    const says = (answer: string) => (question: string) => {
      questions.push(question);
      return Promise.resolve(answer);
    };
    await expect(confirmEnd(configured, says(''))).rejects.toMatchObject(usage('not terminated'));
    await expect(confirmEnd(configured, says('Yes'))).resolves.toBeUndefined();
    expect(questions[0]).toContain('its id is never used again');
  });

  it('asks nothing for a spawned agent', async () => {
    await expect(confirmEnd({ ...configured, origin: 'request' }, null)).resolves.toBeUndefined();
  });
});

describe('antiphon task create', () => {
  it('makes a task that the contract accepts', () => {
    const spec = asSent(
      taskSpecOf('Count.', {
        capabilities: 'math,facts',
        priority: '2',
        deadline: '2h',
        strikes: '5',
        retryOf: '01998f42-1b00-7c3d-8e9f-a0b1c2d3e4f5',
        external: true,
      }),
    );
    expect(spec).toMatchObject({
      prompt: 'Count.',
      capabilities: ['math', 'facts'],
      priority: 2,
      retry: { strikes: 5 },
      retryOf: '01998f42-1b00-7c3d-8e9f-a0b1c2d3e4f5',
      worker: 'external',
    });
    expect(TaskSpec.safeParse(spec).error).toBeUndefined();
    expect(TaskSpec.safeParse(asSent(taskSpecOf('Count.', {}))).error).toBeUndefined();
  });

  it('refuses a deadline that is no time', () =>
    expect(caught(() => taskSpecOf('Count.', { deadline: 'soon' }))).toMatchObject(
      usage('--deadline soon: expected a duration'),
    ));
});

describe('antiphon task cancel-all', () => {
  it.each([[{}], [{ reason: 'over' }], [{ project: 'website', all: true }]])(
    'refuses %j: it needs an agent, a project or the whole workspace',
    (options) => expect(caught(() => tasksToCancel(options))).toMatchObject(usage('which tasks?')),
  );

  it('sends the filter of its options', () =>
    expect([tasksToCancel({ all: true }), tasksToCancel({ agent: 'ada', reason: 'over' })]).toEqual([
      {},
      { agent: 'ada', reason: 'over' },
    ]));
});

describe('antiphon message send', () => {
  it('sends a text to an agent, and JSON of a type to a topic', () => {
    const spoken = asSent(messageOf('Hello', { to: 'main' }));
    const custom = asSent(messageOf('{"version":2}', { topic: 'releases', type: 'Custom' }));
    expect([spoken, custom]).toEqual([
      { to: { agent: 'main' }, type: 'AgentSpoke', content: { text: 'Hello' } },
      { to: { topic: 'releases' }, type: 'Custom', content: { version: 2 } },
    ]);
    for (const message of [spoken, custom]) expect(MessageSpec.safeParse(message).error).toBeUndefined();
  });

  it.each([
    ['Hello', {}, 'name one recipient'],
    ['Hello', { to: 'a', everyone: true }, 'name one recipient'],
    ['Hello', { to: 'a', type: 'Custom' }, 'needs JSON'],
  ])('refuses %j with %j as bad usage', (text, options, message) =>
    expect(caught(() => messageOf(text, options))).toMatchObject(usage(message)),
  );
});

describe('a table', () => {
  it('has columns as wide as their widest cell', () =>
    expect(renderTable(['ID', 'STATE'], [['researcher', 'idle']])).toBe(
      'ID          STATE\nresearcher  idle',
    ));
});
