import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { CALCULATION, commandsIn, startCliWorld, type CliWorld } from './cli-world.js';
import { describeKeyCommands } from './describe-key-commands.js';
import { describeApprovalCommands } from './describe-approval-commands.js';
import { describeFileCommands } from './describe-file-commands.js';
import { MCP_CONFIG, MCP_TOOLS, describeMcpCommands } from './describe-mcp-commands.js';
import { describeOperatorCommands } from './describe-operator-commands.js';
import { describePluginCommands } from './describe-plugin-commands.js';
import { CLI_CHANNEL, describeChannelCommands } from './describe-channel-commands.js';
import { describeProviderCommands } from './describe-provider-commands.js';
import { scriptedConfig, waitForValue, type CliRun } from './stack-under-test.js';

jest.setTimeout(180_000);

const EXAMPLE = fileURLToPath(
  new URL('../../examples/workflows/plan-implement-review.yaml', import.meta.url),
);
const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/;

const CONFIG = scriptedConfig(`
[[agents]]
id = "main"
provider = "scripted"
tools = ["calculator", "plan_step", "write", "rm", "greet*", ${MCP_TOOLS}]

[[agents]]
id = "guarded"
provider = "scripted"
tools = ["calculator"]
[[agents.approvals]]
tool = "calculator"
${MCP_CONFIG}`);

/** One node that waits for an approval, so that its run stays open until it is cancelled. */
const WAITING_WORKFLOW = `
name: waits
nodes:
  - id: only
    agent: guarded
    prompt: '${CALCULATION}'
`;

let world: CliWorld;
let folder: string;
const cli = (...args: string[]): Promise<CliRun> => world.cli(...args);
const run = (...args: string[]): Promise<string> => world.run(...args);
const runJson = <T = Record<string, unknown>>(...args: string[]): Promise<T> => world.runJson<T>(...args);
const say = (content: string, ...options: string[]): Promise<string> => world.say(content, ...options);

beforeAll(async () => {
  world = await startCliWorld(`${CONFIG}${CLI_CHANNEL}`);
  ({ folder } = world);
});
afterAll(() => world?.close());

describe('the command line on a running stack', () => {
  it('status shows the version, the provider, the services and the engines', async () => {
    const text = await run('status');
    expect(text).toMatch(/^antiphon \S+: ok, up \d+ s, \d+ sessions\nprovider {4}scripted \(scripted\)/);
    for (const name of ['gateway', 'agent', 'metering', 'memory', 'sandbox'])
      expect(text).toMatch(new RegExp(`\\n  ${name} +ok`));
    expect(await runJson('status')).toMatchObject({ status: 'ok' });
  });

  it('config check accepts the configuration and counts its parts', async () => {
    // The plug-in of this name is added at run time.
    expect(await run('config', 'check')).toBe(
      'warning: agent main may call the tool greet*, which no plug-in has\n' +
        `${world.config}: ok, 2 agents, 1 providers, 0 plug-ins\n`,
    );
  });

  it('config show prints each setting with its origin, and no secret', async () => {
    const text = await run('config', 'show');
    expect(text).toMatch(/^KEY +ORIGIN +VALUE\n/);
    expect(text).toMatch(/\nagents\[guarded\]\.tools +file +calculator\n/);
    expect(text).toMatch(/\nretention\.events_days +default +30\n/);
    const { settings } = await runJson<{ settings: Record<string, unknown>[] }>('config', 'show');
    expect(settings).toContainEqual({
      ...{ key: 'gateway.token', origin: 'default' },
      ...{ value: 'not set', isSecret: true },
    });
    expect(await run('config', 'show', '--help')).toContain('Example:');
  });

  it('chat prints the answer and each tool call with its result', async () => {
    expect(await run('chat', 'Hello there')).toBe('[scripted] Hello there\n');
    const text = await run('chat', CALCULATION);
    expect(text).toContain('[calculator {"expression":"19+23"}]\n[= 42]\n');
  });

  it('events list and events tail print the log', async () => {
    const sessionId = await say('for the log', '--peer', 'log');
    const stream = ['--stream', `session-${sessionId}`];
    const listed = await run('events', 'list', ...stream);
    expect(listed).toMatch(/^ *\d+ \S+ session-\S+@1 SessionStarted /);
    expect(listed).toContain('TurnCompleted');
    const tailed = await run('events', 'tail', '--once', '--json', ...stream);
    const types = tailed
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { type: string }).type);
    expect([types[0], types.at(-1)]).toEqual(['SessionStarted', 'TurnCompleted']);
  });
});

describeKeyCommands(() => world);

describe('antiphon budget and antiphon session', () => {
  it('show and set budgets, and list and show sessions, also of the past', async () => {
    expect(await run('budget', 'show')).toMatch(/^day\/\S+ {2}\d+ of unlimited tokens/);
    expect(await run('budget', 'set', 'main', '--tokens', '900000')).toBe('main: 900000 tokens, unlimited\n');
    expect(await run('budget', 'set', 'main', '--tokens', '900000')).toBe(
      'main: 900000 tokens, unlimited (unchanged)\n',
    );
    expect(await run('budget', 'show', '--agent', 'main')).toContain('of 900000 tokens');
    await run('chat', 'Hello there.');
    const listed = await run('session', 'list', '--agent', 'main');
    const line = listed.split('\n').find((one) => one.includes('  main:cli:local:user  ')) ?? '';
    const id = UUID.exec(line)?.[0] ?? '';
    expect(listed).toContain('  1 turn  ');
    expect(await run('session', 'show', id)).toContain('> Hello there.  (completed)');
    expect(await run('session', 'find', id, 'HELLO THERE.')).toMatch(/^[0-9a-f-]{36} {2}position \d+\n$/);
    expect(await run('session', 'find', id, 'goodbye')).toBe('not found\n');
    expect((await cli('session', 'find', id, 'there', '--at', '1')).stderr).toContain('there is no session');
    expect((await cli('session', 'show', id, '--at', '1')).stderr).toContain('there is no session');
    expect(await run('session', 'list', '--at', '1')).toBe('no sessions\n');
    expect(await run('budget', 'set', 'main')).toBe('main: unlimited tokens, unlimited\n');
    expect((await cli('budget', 'set', 'day', '--tokens', '900000')).stderr).toContain(
      'give --tokens and --usd',
    );
    const limits = ['--tokens', '900000', '--usd', '25'];
    expect(await run('budget', 'set', 'day', ...limits)).toBe('day: 900000 tokens, 25.0000 USD\n');
    expect(await run('budget', 'show')).toMatch(/^day\/\S+ {2}\d+ of 900000 tokens.* set at run time\n/);
    expect(await run('budget', 'set', 'day', '--configured')).toBe('day: as configured\n');
  });
});

describe('antiphon search', () => {
  it('finds a message by its words, and says where there is none', async () => {
    await run('chat', 'The Hallig boat leaves at noon.', '--peer', 'search');
    expect(await run('search', 'hallig', 'noon', '--kinds', 'message')).toMatch(
      /^\S+ {2}message \S+ {2}The Hallig boat leaves at noon\.\n {2}The Hallig boat leaves at noon\.\n/,
    );
    expect(await run('search', 'walrus')).toBe('nothing is found\n');
  });
});

describe('antiphon memory', () => {
  it('query and show what an agent learned from a message, and name an unknown entry', async () => {
    await run('chat', 'My city is Oslo.', '--peer', 'memory');
    const listed = await waitForValue('the learned fact', async () => {
      const text = await run('memory', 'query', 'city', '--agent', 'main', '--full');
      return text.includes('Oslo') ? text : undefined;
    });
    expect(listed).toMatch(/  .*city.*Oslo.*  \(learned \S+\)\n  from turn \S+: My city is Oslo\.\n/);
    const memoryId = UUID.exec(listed)?.[0] ?? '';
    const shown = await run('memory', 'show', memoryId);
    expect(listed.startsWith(shown.trimEnd())).toBe(true);
    expect(await run('memory', 'query', 'walrus', '--agent', 'main')).toMatch(
      /^memory has no such entries\nas of position \d+ of \d+\n$/,
    );
    const unknown = '01998f42-3d22-7e5f-a0b1-c2d3e4f5a6b7';
    expect(await cli('memory', 'show', unknown)).toMatchObject({
      ...{ code: 1, stderr: expect.stringContaining(`there is no memory ${unknown}`) },
    });
    expect((await cli('memory', 'query')).code).toBe(2);
    expect(await run('memory', 'turns', memoryId)).toBe('no turn of this page used the entry\n');
    await run('chat', 'What is my city?', '--peer', 'memory');
    await run('chat', 'And the weather in my city?', '--peer', 'memory');
    const used = await run('memory', 'turns', memoryId);
    expect(used).toMatch(/  And the weather in my city\?\n.*  What is my city\?\n$/s);
    const page = JSON.parse(await run('memory', 'turns', memoryId, '--limit', '1', '--json')) as {
      nextCursor: string;
    };
    const older = await run('memory', 'turns', memoryId, '--cursor', page.nextCursor);
    expect(older).toMatch(/ of session \S+\n  What is my city\?\n$/);
  });
});

describe('antiphon workflow and antiphon run', () => {
  it('validate, save and list a workflow, and start it by its id', async () => {
    expect(await run('workflow', 'validate', EXAMPLE)).toBe(
      'plan-implement-review: plan, implement, review\n',
    );
    const saved = await run('workflow', 'save', EXAMPLE);
    expect(saved).toMatch(/plan-implement-review, version 1, \w+\n$/);
    const id = UUID.exec(saved)?.[0] ?? '';
    expect(await run('workflow', 'list')).toContain(`${id}  `);
    expect(await run('workflow', 'show', id)).toContain(`${id}  `);
    expect(await runJson('events', 'show', '1')).toMatchObject({ position: 1 });
    const watched = await run('run', 'start', id, '--input', 'goal=a parser', '--watch');
    expect(watched).toMatch(/plan: completed[^]*review: completed[^]*plan-implement-review: completed/);
    const runId = /\(run (\S+)\)/.exec(watched)?.[1] ?? '';
    expect(await run('run', 'list', '--status', 'completed')).toContain(runId);
    expect(await run('run', 'show', runId)).toContain('Goal: a parser');
  });

  it('cancel a run that waits for an approval', async () => {
    const file = join(folder, 'waits.yaml');
    writeFileSync(file, WAITING_WORKFLOW);
    const id = (await run('run', 'start', file)).trim();
    await waitForValue('the approval of the run', async () => {
      const { approvals } = await runJson<{ approvals: unknown[] }>('approvals', 'list');
      return approvals[0];
    });
    expect(await run('run', 'cancel', id)).toMatch(new RegExp(`^${id}: cancell(ing|ed)\\n$`));
    await waitForValue('the end of the run', async () =>
      (await runJson('run', 'show', id))['status'] === 'cancelled' ? true : undefined,
    );
    expect(await run('approvals', 'list')).toBe('no approvals\n');
  });
});

// @shows S1
describe('antiphon agent, antiphon task and antiphon message', () => {
  it('spawn an agent from a file, watch its task, and pause, resume and terminate it', async () => {
    const file = join(folder, 'researcher.toml');
    writeFileSync(file, 'name = "Researcher"\ncapabilities = ["research"]\n');
    const spawned = await run('agent', 'spawn', '--file', file, '--id', 'r1', '--project', 'tides');
    expect(spawned).toMatch(/^r1 \(Researcher\): idle\n/);
    // The list follows the log.
    const listed = await waitForValue('r1 in the list', async () => {
      const text = await run('agent', 'list', '--state', 'idle', '--project', 'tides');
      return text.includes('r1') ? text : undefined;
    });
    expect(listed).toMatch(/^ID +STATE +MODEL +PROJECT +PARENT +NAME\nr1 +idle .* tides +- +Researcher\n$/);
    const watched = await run('task', 'create', 'Collect facts.', '--capabilities', 'research', '--watch');
    expect(watched).toMatch(
      /queued with priority 5\n[^]*assigned to agent\/r1, claim 1\n[^]*completed\n[^]*Collect facts\./,
    );
    expect(await run('agent', 'pause', 'r1', '--reason', 'lunch')).toBe('r1: paused\n');
    expect(await run('agent', 'get', 'r1')).toMatch(/^r1 \(Researcher\): paused\n {2}reason +lunch\n/);
    expect(await run('agent', 'resume', 'r1')).toBe('r1: idle\n');
    expect(await run('agent', 'metrics', 'r1')).toMatch(/^ID +SAMPLE +CPU .*\nr1 +(no sample yet|2\S+Z) /);
    expect(await run('agent', 'capabilities')).toMatch(
      /^CAPABILITY +COUNT +AGENTS\nresearch +1 +r1 \(idle\)\n$/,
    );
    expect(await run('agent', 'terminate', 'r1')).toBe('r1: terminated\n');
    // The history follows the log.
    const history = await waitForValue('the end in the history of r1', async () => {
      const text = await run('agent', 'history', 'r1');
      return text.includes('-> terminated') ? text : undefined;
    });
    expect(history).toMatch(/-> terminated[^]*idle -> paused .*: lunch\n/);
    expect(await cli('agent', 'resume', 'r1')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/AGENT\.STATE_CONFLICT\)\nWhat to do: /),
    });
    expect(await cli('agent', 'spawn')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('needs a name'),
    });
  });

  // @shows C8
  it('list, show, watch and cancel a task that waits', async () => {
    const id = (await run('task', 'create', 'Later.', '--capabilities', 'nothing-has-it')).trim();
    expect(await run('task', 'list', '--state', 'queued')).toMatch(
      new RegExp(`\n${id} +queued +5 .*Later\\.\n`),
    );
    expect(await run('task', 'show', id)).toMatch(new RegExp(`^${id}: queued\n {2}title +Later\\.\n`));
    const watch = cli('task', 'watch', id);
    expect(await run('task', 'cancel', id, '--reason', 'a spec')).toContain('cancelled\n');
    expect(await watch).toMatchObject({ code: 1, stdout: expect.stringContaining('cancelling: a spec\n') });
    expect((await cli('task', 'show', '01998f42-1b00-7c3d-8e9f-a0b1c2d3e4f5')).stderr).toContain(
      '`antiphon task list` shows the tasks',
    );
  });

  it('send a message to an agent and to a topic that it subscribes to, and list both', async () => {
    expect(await run('message', 'subscribe', 'main', 'releases')).toBe('main: releases\n');
    expect(await run('message', 'send', 'Look at the tides.', '--to', 'main')).toMatch(UUID);
    const custom = ['--type', 'Custom', '--topic', 'releases'];
    await run('message', 'send', '{"version":2}', ...custom);
    expect(await run('message', 'list', 'main')).toMatch(
      /unread .* topic releases {2}Custom: \{"version":2\}\n.* -> main {2}AgentSpoke: Look at the tides\.\n$/,
    );
    expect(await run('message', 'unsubscribe', 'main', 'releases')).toBe('main: no topics\n');
    expect((await cli('message', 'send', 'hello')).code).toBe(2);
  });
});

describe('antiphon chats', () => {
  it('list, rename, branch and delete a chat', async () => {
    const chats = `${world.gatewayUrl()}/api/v1/workspaces/default/chats`;
    const headers = { 'content-type': 'application/json' };
    await fetch(chats, { method: 'POST', headers, body: JSON.stringify({ name: 'notes' }) });
    expect(await run('chats', 'list')).toMatch(/^\S+ {2}\S+ {2}main +notes\n$/);
    expect(await run('chats', 'rename', 'notes', 'minutes')).toMatch(/ minutes\n$/);
    const body = JSON.stringify({ content: 'hello' });
    const sent = await fetch(`${chats}/minutes`, { method: 'POST', headers, body });
    const { turnId } = (await sent.json()) as { turnId: string };
    expect(await run('chats', 'branch', 'minutes', 'hello again', '--at', turnId)).toMatch(
      / minutes \(2\)\n$/,
    );
    expect(await run('chats', 'branches', 'minutes')).toMatch(/ minutes\n.* minutes \(2\)\n$/);
    expect((await cli('chats', 'branch', 'minutes')).code).toBe(2);
    expect(await run('chats', 'delete', 'minutes (2)')).toBe('minutes (2): deleted\n');
    expect(await run('chats', 'delete', 'minutes')).toBe('minutes: deleted\n');
    expect(await run('chats', 'list')).toBe('no chats\n');
  });
});

describeFileCommands(() => world);

describeApprovalCommands(() => world);

describe('antiphon session', () => {
  it('export, replay, fork, repeat and compare a session', async () => {
    const origin = await say(CALCULATION, '--peer', 'travel');
    expect(await run('session', 'export', origin, '--out', 'talk.jsonl')).toMatch(
      /^\d+ events, chain whole up to /,
    );
    expect(readFileSync(join(folder, 'talk.jsonl'), 'utf8')).toContain(origin);
    expect(await run('session', 'resume', origin)).toContain('42');
    expect(await run('session', 'replay', '--from', 'talk.jsonl', '--strict')).toContain(
      'every event has the hash',
    );
    const fork = (await run('session', 'fork', origin)).trim();
    expect(fork).toMatch(UUID);
    await say('and now?', '--session', fork);
    expect(await run('session', 'diff', origin, fork)).toContain('only in the second');
    expect(await run('session', 'explain', origin)).toContain('input tokens read from the cache');
    expect(await run('provider', 'show')).toContain('scripted');
    expect(await run('session', 'whatif', origin, '--model', 'other')).toMatch(/^what-if \S+, from version /);
  });
});

describeProviderCommands(() => world);
describeChannelCommands(() => world);

describePluginCommands(() => world);

describeMcpCommands(() => world);
// The last ones end the stack.
describeOperatorCommands(() => world);

describe('this file', () => {
  it('calls every command of the command line', async () => {
    const calls = [...world.called];
    const groups = commandsIn(await run('--help'));
    const commands = await Promise.all(
      groups.map(async (group) => {
        const names = commandsIn(await run(group, '--help'));
        return names.length === 0 ? [group] : names.map((name) => `${group} ${name}`);
      }),
    );
    expect(groups.length).toBeGreaterThan(10);
    expect(commands.flat().filter((name) => !calls.some((call) => call.startsWith(name)))).toEqual([]);
  });
});
