import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createClient, type Client, type Notification, type TurnFrame } from '@antiphon/client';
import type { AgentMetrics, AgentStateChange, AgentView, TaskItem } from '@antiphon/contracts/agent';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import pg from 'pg';
import { runCli, startStackWith, twoVendorConfig, waitForValue } from './stack-under-test.js';

const APPROVALS = `
[[agents]]
id = "base"
provider = "openai"
model = "gpt-4o"
tools = ["calculator", "ask_agent"]

[[agents.approvals]]
tool = "calculator"
`;
const NAMES = ['planner', 'researcher', 'writer'] as const;
type Name = (typeof NAMES)[number];

/** Holds the answer of the second model call of the planner until a spec lets it go. */
const gate = Promise.withResolvers<void>();
/** Holds the last answer of the writer after its first text. */
const speech = Promise.withResolvers<void>();
const roleOf = (body: unknown): string => /You are the (\w+)\./.exec(JSON.stringify(body))?.[1] ?? 'none';
const asks = (agent: string, question: string) => ({
  tools: [{ id: `call_${agent}`, name: 'ask_agent', input: { agent, question } }],
});

/** The planner asks the other two. The researcher calculates, which needs an approval. */
const script: MockScript = async ({ seen, user, toolResults }) => {
  const role = roleOf(seen.body);
  if (role === 'researcher' && toolResults.length === 0)
    return { tools: [{ id: 'call_sum', name: 'calculator', input: { expression: '40 + 2' } }] };
  if (role === 'writer' && user.includes('One more.')) {
    const before = (piece: string) => (piece.includes('more.') ? speech.promise : undefined);
    return { reply: { text: ['One ', 'more.'] }, before };
  }
  if (role !== 'planner') return { text: [`${role}: ${toolResults.at(-1) ?? user}`] };
  if (toolResults.length === 0) return asks('researcher', 'What is 40 + 2?');
  if (toolResults.length > 1) return { text: [`Plan: ${toolResults.at(-1)}`] };
  await gate.promise;
  return asks('writer', 'Write it down.');
};

interface Seen {
  readonly client: Client;
  readonly frames: Notification[];
}
/**
 * A state as both clients and the log have it. Clients see `speaking` before the log has the event
 * of its answer, so it has none here.
 */
type Change = Pick<AgentStateChange, 'from' | 'to' | 'phase'> & { readonly eventId: string | null };

let mock: MockModel;
let stack: TestStack;
let database: pg.Client;
const seen: Seen[] = [];

/** Connects a client that gets the states of all agents, to one gateway. */
const watch = async (url: string): Promise<Seen> => {
  const frames: Notification[] = [];
  const client = createClient({
    url,
    onNotification: (frame) => void frames.push(frame),
    onConnect: () => void client.call('agent.subscribe', { frames: ['state'] }),
  });
  await client.connect();
  return { client, frames };
};

const call = async <T>(method: string, path: string, body?: object): Promise<T> => {
  const response = await fetch(`${stack.gatewayUrl}/api/v1${path}`, {
    method,
    ...(body ? { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) } : {}),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
};
/** Returns the session of the first message to the planner. */
const sessionOfPlanner = async (): Promise<string> => {
  const text = "select stream_id from events where type = 'TurnRequested' order by position limit 1";
  const { rows } = await database.query<{ stream_id: string }>(text);
  return rows[0]?.stream_id.slice('session-'.length) ?? '';
};
const stateOf = async (id: Name): Promise<string> => (await call<AgentView>('GET', `/agents/${id}`)).state;
/** Returns the children of the planner and their states, as of a position of the log. */
const childrenAt = async (position: number): Promise<string[]> => {
  const path = `/agents?parent=planner&at=${position}`;
  const { agents } = await call<{ agents: AgentView[] }>('GET', path);
  return agents.map(({ id, state }) => `${id} ${state}`).sort();
};
const toChange = ({ from, to, phase, eventId }: Change): Change => ({
  ...{ from, to, phase, eventId: phase === 'speaking' ? null : eventId },
});
const changesOf = ({ frames }: Seen, agentId: Name): Change[] =>
  frames
    .filter((frame) => frame['type'] === 'agent_broadcast_state' && frame['agentId'] === agentId)
    .map((frame) => toChange(frame as unknown as Change));
/** Returns changes without waits for an approval, which are shown live and are in no history. */
const withoutWaits = (changes: readonly Change[]): Change[] => {
  const kept: Change[] = [];
  for (const change of changes) {
    const isBack = change.from === change.to && change.phase === kept.at(-1)?.phase;
    if (change.phase !== 'waiting' && !isBack) kept.push(change);
  }
  return kept;
};
const historyOf = async (agentId: Name): Promise<Change[]> => {
  const path = `/agents/${agentId}/history?limit=1000`;
  const { changes } = await call<{ changes: AgentStateChange[] }>('GET', path);
  return changes.reverse().map(toChange);
};

/** A change of one fact: the check that finds it, the type of the fact, a condition, an assignment. */
type FactChange = readonly [check: string, type: string, where: string, assignment: string];
const set = (path: string, value: string): string => `data = jsonb_set(data, '{${path}}', '${value}')`;
/** Changes of one fact each, which the audit finds. */
export const FACT_CHANGES: readonly FactChange[] = [
  ['agents-follow-their-lifecycle', 'AgentPaused', 'true', "type = 'AgentReady'"],
  ['trees-stay-within-limits', 'TreeOpened', "data ->> 'rootId' = 'planner'", set('limits,size', '1')],
  ['agents-begin-and-end-in-order', 'AgentSpawned', "data ->> 'agentId' = 'writer'", set('parentId', '"x"')],
  ['tasks-end-once', 'TaskEnded', 'true', set('epoch', '2')],
  ['inboxes-are-read-forward', 'InboxRead', 'true', set('upTo', '999999')],
  ['messages-arrive-once', 'AgentMessageSent', "data ->> 'type' = 'ChildEnded'", set('to,agentId', '"x"')],
  ['tree-budgets-are-nested', 'BudgetLimitSet', 'true', set('limitTokens', '1')],
  [
    'messages-are-received-once',
    'MessagesReceived',
    'true',
    "data = jsonb_set(data, '{messages}', (data -> 'messages') || (data -> 'messages'))",
  ],
];

/** Describes the life of three agents, and what the audit says after each change of one fact. */
export const describeThreeAgents = (changes: readonly FactChange[]): void => {
  jest.setTimeout(300_000);
  prepare();
  describeLife();
  describeAudit(changes);
};

const prepare = (): void => {
  beforeAll(async () => {
    mock = await startMockModel(script);
    stack = await startStackWith(twoVendorConfig(mock.url) + APPROVALS, { gateway: 2 });
    database = new pg.Client({ connectionString: stack.databaseUrl });
    await database.connect();
    for (const url of stack.stackJson().urls.gateways) seen.push(await watch(url));
  });
  afterAll(async () => {
    for (const { client } of seen) client.close();
    await database?.end();
    await stack?.stop();
    await mock?.close();
  });
};

const describeLife = (): void => {
  describe('three agents with isolated folders', () => {
    it('are spawned, each with folders that only the service can read', async () => {
      for (const id of NAMES) {
        const parent = id === 'planner' ? {} : { parent: 'planner' };
        await call('POST', '/agents', {
          ...{ id, name: id, base: 'base', systemPrompt: `You are the ${id}.`, ...parent },
          budget: { tokens: 1_000_000 },
        });
      }
      const message = { type: 'AgentSpoke', content: { text: 'Be exact.' } };
      await call('POST', '/agents/researcher/messages', message);
      for (const id of NAMES)
        for (const folder of ['.agent', 'projects', 'logs']) {
          const path = join(stack.home, 'agents', 'default', id, folder);
          await waitForValue(path, async () => existsSync(path) || undefined);
          expect(statSync(path).mode & 0o777).toBe(0o700);
        }
    });

    it('work together, with an approval that a client at another gateway answers by the library', async () => {
      const [one, two] = seen as [Seen, Seen];
      const turn = one.client.chat({
        channel: 't',
        account: 'a',
        peer: 'p',
        agent: 'planner',
        content: 'Plan.',
      });
      const frames: TurnFrame[] = [];
      const reading = (async () => {
        for await (const frame of turn) frames.push(frame);
      })();
      const pending = await waitForValue('the approval', async () => {
        const { approvals } = await two.client.approvals.list({ status: 'pending' });
        return approvals[0];
      });
      expect(pending).toMatchObject({ tool: 'calculator', agentId: 'researcher' });
      await two.client.approvals.answer({ approvalId: pending.id, decision: 'approve' });
      await waitForValue('the decision at the other gateway', async () => {
        const { status } = await one.client.approvals.get(pending.id);
        return status === 'granted' || undefined;
      });
      await waitForValue('the second call of the planner', async () => {
        const calls = mock.calls.filter(({ seen: { body } }) => roleOf(body) === 'planner');
        return calls.length === 2 || undefined;
      });
      // A pause in mid-run waits for the end of the step: its tools end, and no model is called.
      await call('PATCH', '/agents/planner', { action: 'pause', reason: 'lunch' });
      gate.resolve();
      await waitForValue('the turn of the writer, which waits', async () => {
        const { rows } = await database.query("select from events where type = 'TurnRequested'");
        return rows.length === 3 || undefined;
      });
      for (const id of NAMES) expect([id, await stateOf(id)]).toEqual([id, 'paused']);
      await call('PATCH', '/agents/planner', { action: 'resume' });
      await reading;
      expect(await turn.text()).toContain('Plan: ');
      expect(frames.at(-1)).toMatchObject({ event: 'done', data: { status: 'completed' } });
      const { rows } = await database.query<{ type: string }>(
        `select type from events where type in ('AgentPaused', 'AgentResumed', 'ModelCallStarted') order by position`,
      );
      const types = rows.map(({ type }) => type);
      expect(types.slice(types.indexOf('AgentPaused'), types.lastIndexOf('AgentResumed'))).not.toContain(
        'ModelCallStarted',
      );
      expect(frames[0]?.data).toMatchObject({ sessionId: await sessionOfPlanner() });
      expect(mock.calls.map(({ seen: { body } }) => roleOf(body))).toEqual([
        ...['planner', 'researcher', 'researcher', 'planner', 'writer', 'planner'],
      ]);
    });

    it('leave one trace of the whole tree, and sessions whose replay has equal hashes', async () => {
      const { rows } = await database.query<{ stream_id: string; trace: string }>(
        `select stream_id, split_part(metadata ->> 'traceparent', '-', 2) as trace from events
       where stream_id in (select stream_id from events where type = 'SessionStarted') group by 1, 2`,
      );
      expect(new Set(rows.map(({ stream_id: stream }) => stream)).size).toBe(3);
      const planner = `session-${await sessionOfPlanner()}`;
      const own = rows.find(({ stream_id: stream }) => stream === planner)?.trace;
      expect(own).toMatch(/^[0-9a-f]{32}$/);
      expect(new Set(rows.map(({ trace }) => trace))).toEqual(new Set([own]));
      for (const stream of new Set(rows.map(({ stream_id: id }) => id.slice('session-'.length)))) {
        const { code, stdout } = await runCli(stack, ['session', 'replay', stream, '--strict', '--json']);
        expect([stream, code, JSON.parse(stdout)]).toEqual([
          ...[stream, 0],
          expect.objectContaining({ ok: true, divergences: [] }),
        ]);
      }
    });

    it('have a fork that leads to the children of its cut, also after they have ended', async () => {
      const sessionId = await sessionOfPlanner();
      const { origin } = await call<{ origin: { version: number } }>(
        'POST',
        `/sessions/${sessionId}/fork`,
        {},
      );
      const path = `/events?stream=session-${sessionId}&limit=1000`;
      const { events } = await call<{ events: { position: number; streamVersion: number }[] }>('GET', path);
      const cut = events.find(({ streamVersion }) => streamVersion === origin.version)?.position ?? 0;
      expect(await childrenAt(cut)).toEqual(['researcher idle', 'writer idle']);
      const first = events[0]?.position ?? 0;
      expect(await childrenAt(first)).toEqual(['researcher idle', 'writer idle']);
    });

    it('are terminated, and both clients saw each transition live, equal to the fold of the log', async () => {
      const { rows } = await database.query<{ head: string }>('select max(position) as head from events');
      const task = await call<TaskItem>('POST', '/tasks', { agent: 'writer', prompt: 'One more.' });
      await waitForValue('the speech of the writer', async () => {
        const { phase } = await call<AgentView>('GET', '/agents/writer');
        const last = seen.map((client) => changesOf(client, 'writer').at(-1)?.phase);
        return [phase, ...last].every((shown) => shown === 'speaking') || undefined;
      });
      speech.resolve();
      await waitForValue('the task', async () => {
        const { state } = await call<TaskItem>('GET', `/tasks/${task.id}`);
        return state === 'completed' || undefined;
      });
      for (const id of ['writer', 'planner']) await call('DELETE', `/agents/${id}`);
      for (const id of NAMES) {
        const history = await waitForValue(`the end of ${id}`, async () => {
          const changes = await historyOf(id);
          return changes.at(-1)?.to === 'terminated' ? changes : undefined;
        });
        const states = new Set(history.map(({ to }) => to));
        expect([...states]).toEqual(
          expect.arrayContaining(['spawning', 'idle', 'working', 'paused', 'terminated']),
        );
        for (const client of seen) {
          await waitForValue(
            `frames of ${id}`,
            async () => withoutWaits(changesOf(client, id)).length >= history.length || undefined,
          );
          expect(withoutWaits(changesOf(client, id))).toEqual(history);
        }
      }
      expect(await childrenAt(Number(rows[0]?.head))).toEqual(['researcher idle', 'writer idle']);
    });

    it('have samples of what they used, also of the time before a stop of the service', async () => {
      const [agent] = stack.stackJson().services['agent'] ?? [];
      if (!agent?.pid) throw new Error('the agent has no process');
      process.kill(agent.pid, 'SIGTERM');
      const [sample] = await waitForValue('a sample', async () => {
        const path = '/agents/researcher/metrics';
        const page = await call<{ samples: AgentMetrics[] }>('GET', path).catch(() => ({ samples: [] }));
        return page.samples.length > 0 ? page.samples : undefined;
      });
      expect(sample).toMatchObject({ turns: 1, modelCalls: 2, toolCalls: 1 });
      expect(sample?.cpuMs).toBeGreaterThan(0);
      expect(sample?.memoryBytes).toBeGreaterThan(0);
    });
  });
};

const describeAudit = (changes: readonly FactChange[]): void => {
  describe('antiphon audit', () => {
    const audit = async () => {
      const { code, stdout } = await runCli(stack, ['audit', '--json']);
      const { checks } = JSON.parse(stdout) as { checks: { name: string; violations: number }[] };
      return { code, broken: checks.filter(({ violations }) => violations > 0).map(({ name }) => name) };
    };
    /** Changes one fact in place, past the triggers, as a person with the owner's password could. */
    const change = async (type: string, where: string, change: string): Promise<() => Promise<void>> => {
      const found = await database.query<{ event_id: string; type: string; data: object }>(
        `select event_id, type, data from events where type = $1 and ${where} order by position limit 1`,
        [type],
      );
      const [fact] = found.rows;
      if (!fact) throw new Error(`no ${type}`);
      const write = async (assignment: string, ...values: unknown[]): Promise<void> => {
        await database.query("set session_replication_role = 'replica'");
        await database.query(`update events set ${assignment} where event_id = $1`, [
          fact.event_id,
          ...values,
        ]);
      };
      await write(change);
      return () => write('type = $2, data = $3', fact.type, fact.data);
    };

    it('finds nothing in the log of these agents', async () => {
      const { code, broken } = await audit();
      expect(broken).toEqual([]);
      // 5: all checks passed, and the newest events are in no root yet.
      expect([0, 5]).toContain(code);
    });

    it.each(changes)(
      'exits with 1 and names %s after one changed %s',
      async (check, type, where, assignment) => {
        const restore = await change(type, where, assignment);
        try {
          const { code, broken } = await audit();
          expect([code, broken]).toEqual([1, expect.arrayContaining([check])]);
        } finally {
          await restore();
        }
      },
    );
  });
};
