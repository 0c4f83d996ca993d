import { describe, expect, it } from '@jest/globals';
import type { SessionEvent, TaskEvent } from '@antiphon/contracts/agent';
import type { BudgetEvent, BudgetLimitEvent, BudgetLimitSet } from '@antiphon/contracts/metering';
import type { AgentFact, AgentsCheck } from '../audit-check.js';
import { findingsOf, TIME, uuid } from '../audit-examples.spec.js';
import { treeBudgetsAreNested } from '../budget-checks/tree-budgets.js';
import { admitted, fact, message, placeIn, spawned, terminated } from './agent-examples.spec.js';
import type { InStream } from './agent-examples.spec.js';
import { agentsBeginAndEndInOrder } from './agents-in-order.js';
import { messagesArriveOnce } from './ends-are-told-once.js';
import { messagesAreReceivedOnce } from './inbox-reads.js';

type Facts = readonly InStream<AgentFact>[];
const find = (check: AgentsCheck, facts: Facts): string[] => findingsOf(check, placeIn(facts));
/** Runs a check in two halves, the second from the saved state of the first. */
const findInHalves = (check: AgentsCheck, facts: Facts): string[] => {
  const inputs = placeIn(facts);
  const half = Math.floor(inputs.length / 2);
  const first = check.start();
  const early = inputs.slice(0, half).flatMap((input) => first.see(input));
  const second = check.start(JSON.parse(JSON.stringify(first.save?.())));
  const late = inputs.slice(half).flatMap((input) => second.see(input));
  return [...early, ...late, ...second.end()].map(
    ({ kind, at, message: text }) => `${kind} ${at.position} ${text}`,
  );
};

const agentIn = (id: string, event: AgentFact): InStream<AgentFact> => [`agent-${id}`, event];
const SESSION = uuid(900);
const session = (type: AgentFact['type'], data: object): InStream<AgentFact> => [
  `session-${SESSION}`,
  fact<SessionEvent>(type as SessionEvent['type'], data) as AgentFact,
];
const started = (agentId: string) => session('SessionStarted', { sessionId: SESSION, agentId });
const turn = (n: number) => session('TurnRequested', { turnId: uuid(n) });
const call = (n: number, attempt: number) => session('ModelCallStarted', { turnId: uuid(n), attempt });
const tool = (n: number, attempt: number) => session('ToolCallRequested', { turnId: uuid(n), attempt });
const TREE = 'agent-tree-root';

describe('agents-begin-and-end-in-order', () => {
  const born: Facts = [agentIn('root', spawned('root')), agentIn('a', spawned('a', 'root'))];

  it('finds nothing in a tree whose step in flight ends after its agent', () => {
    const facts: Facts = [
      [TREE, admitted('root', null)],
      ...born.slice(0, 1),
      [TREE, admitted('a')],
      ...born.slice(1),
      started('a'),
      turn(1),
      call(1, 1),
      agentIn('a', terminated('a')),
      turn(2),
      tool(1, 1),
      tool(1, 1),
    ];
    expect(find(agentsBeginAndEndInOrder, facts)).toEqual([]);
    expect(findInHalves(agentsBeginAndEndInOrder, facts)).toEqual([]);
  });

  const ended: Facts = [...born, started('a'), turn(1), agentIn('a', terminated('a')), call(1, 1)];
  it.each<[string, Facts, string]>([
    [
      'an id that was used before',
      [...born, agentIn('x', spawned('a'))],
      'violation 3 the id a was used before (agent-a)',
    ],
    [
      'a parent that does not exist',
      [agentIn('a', spawned('a', 'root'))],
      'violation 1 the parent root of agent a does not exist',
    ],
    [
      'a spawn after the end of the parent',
      [...born, agentIn('a', terminated('a')), agentIn('b', spawned('b', 'a'))],
      'violation 4 agent b was spawned after the end of its parent a',
    ],
    [
      'a place without an agent',
      [[TREE, admitted('b')]],
      'violation 1 agent b has a place in a tree and was never spawned',
    ],
    [
      'a place of another parent',
      [...born.slice(0, 1), [TREE, admitted('a', 'x')], ...born.slice(1)],
      'violation 3 agent a has the place of a child of x',
    ],
    [
      'a place after the end',
      [...born, agentIn('a', terminated('a')), [TREE, admitted('a')]],
      'violation 4 agent a got a place in a tree after its end',
    ],
    [
      'a second model call after the end',
      [...ended, call(1, 2)],
      'violation 7 ModelCallStarted of attempt 2 after the end of its agent',
    ],
    [
      'tool calls of two steps after the end',
      [...ended, tool(1, 2)],
      'violation 7 ToolCallRequested of attempt 2 after the end of its agent',
    ],
    [
      'a model call of a turn that came after the end',
      [...ended.slice(0, 5), turn(2), call(2, 1)],
      'violation 7 ModelCallStarted of a turn that was accepted after the end of its agent',
    ],
  ])('reports %s', (_, facts, finding) => {
    expect(find(agentsBeginAndEndInOrder, facts)).toContain(finding);
    expect(findInHalves(agentsBeginAndEndInOrder, [...facts, turn(9), turn(10)])).toContain(finding);
  });
});

describe('messages-arrive-once', () => {
  const family: Facts = [
    agentIn('root', spawned('root')),
    agentIn('a', spawned('a', 'root')),
    started('root'),
  ];
  const inbox = (event: ReturnType<typeof message>): InStream<AgentFact> => ['agent-inbox-root', event];
  const childEnded = (to = 'root') =>
    inbox(message(50, to, { type: 'ChildEnded', from: 'agent/a', content: { agentId: 'a' } }));
  const read = (upTo: number, count: number, turnId = uuid(1)): InStream<AgentFact> => [
    'agent-inbox-root',
    fact('InboxRead', { agentId: 'root', sessionId: SESSION, turnId, upTo, count }) as AgentFact,
  ];
  const received = (upTo: number, ...messages: ReturnType<typeof message>[]) =>
    session('MessagesReceived', { turnId: uuid(1), upTo, messages: messages.map(({ data }) => data) });
  const said = message(60, 'root');
  const end = agentIn('a', terminated('a'));
  const task = (type: TaskEvent['type'], data: object): InStream<AgentFact> => [
    `task-${uuid(70)}`,
    fact<TaskEvent>(type, { taskId: uuid(70), ...data }),
  ];

  it('finds nothing where the parent gets the end of its child once, into one context', () => {
    const facts: Facts = [...family, end, childEnded(), received(5, childEnded()[1] as never), read(5, 1)];
    expect(find(messagesArriveOnce, facts)).toEqual([]);
    expect(findInHalves(messagesArriveOnce, facts)).toEqual([]);
  });

  it('asks for no message to a parent that has ended too', () =>
    expect(find(messagesArriveOnce, [...family, end, agentIn('root', terminated('root'))])).toEqual([]));

  it('reports an end that its parent did not get as open', () =>
    expect(find(messagesArriveOnce, [...family, end])).toEqual([
      'open 4 agent root did not get the end of child a',
    ]));

  it.each<[string, Facts, string]>([
    [
      'an end that was sent twice',
      [...family, end, childEnded(), childEnded()],
      'violation 6 the end of child a was sent twice',
    ],
    [
      'an end in the inbox of another agent',
      [...family, end, childEnded('b')],
      'violation 5 the end of child a was sent to b, not to root',
    ],
    [
      'an end of an agent without a parent',
      [childEnded()],
      'violation 1 the end of child a was sent, which has no parent',
    ],
    [
      'the end of a task that was sent to another agent',
      [
        task('TaskQueued', { parentAgentId: 'root' }),
        task('TaskEnded', {}),
        inbox(
          message(51, 'b', { type: 'TaskEnded', from: `task/${uuid(70)}`, content: { taskId: uuid(70) } }),
        ),
      ],
      `violation 3 the end of task ${uuid(70)} was sent to b, not to root`,
    ],
    [
      'a read without a context',
      [...family, inbox(said), read(4, 1)],
      'violation 5 an inbox was read, and no context has its messages',
    ],
    [
      'a context without a read',
      [...family, inbox(said), received(4, said)],
      'violation 5 messages in a context were not read from an inbox',
    ],
    [
      'fewer messages than were read',
      [...family, inbox(said), read(4, 2), received(4, said)],
      'violation 6 2 messages were read, 1 are in the context',
    ],
    [
      'a message in two contexts',
      [...family, inbox(said), read(4, 1), received(4, said), read(6, 1), received(6, said)],
      `violation 8 message ${uuid(60)} was not sent, or is in a context already`,
    ],
    [
      'a message that was skipped',
      [...family, inbox(said), inbox(message(61, 'root')), read(5, 1), received(5, message(61, 'root'))],
      `violation 7 message ${uuid(60)} was skipped`,
    ],
    [
      'a message of another agent',
      [...family, inbox(message(62, 'b')), read(4, 1), received(4, message(62, 'b'))],
      `violation 6 message ${uuid(62)} to b is in a context of root`,
    ],
  ])('reports %s', (_, facts, finding) => expect(find(messagesArriveOnce, facts)).toContain(finding));

  it('reports a broadcast that is in one context twice', () => {
    const twice = [
      received(4, message(63, null)),
      received(5, message(63, null)),
    ] as readonly InStream<SessionEvent>[];
    expect(findingsOf(messagesAreReceivedOnce, placeIn(twice))).toEqual([
      `violation 2 message ${uuid(63)} is in the context twice`,
    ]);
  });
});

// @shows agents-A3
describe('tree-budgets-are-nested', () => {
  const LATER = '2026-11-21T10:01:00.000Z';
  const limit = (agentId: string, limitTokens: number | null): InStream<AgentFact> => [
    `budget-limit-${agentId}`,
    fact<BudgetLimitSet>('BudgetLimitSet', {
      ...{ scopeKey: `agent/${agentId}`, limitTokens, limitMicroUsd: null, at: TIME },
      appliesBy: '2026-11-21T10:00:05.000Z',
    }),
  ];
  const reserved = (
    scopes: Record<string, number>,
    reservedAt = LATER,
    agents = ['a', 'root'],
  ): InStream<AgentFact> => [
    `budget-${uuid(5)}`,
    fact<BudgetEvent>('BudgetReserved', {
      ...{ agentId: 'a', agents, reservedAt, sessionKey: 'a:ws:x:y' },
      scopes: Object.entries(scopes).map(([id, limitTokens]) => ({
        ...{ kind: 'agent', key: `agent/${id}`, limitTokens, limitMicroUsd: null },
      })),
    }) as AgentFact,
  ];
  const tree: Facts = [
    limit('root', 100),
    agentIn('root', spawned('root')),
    limit('a', 50),
    agentIn('a', spawned('a', 'root')),
  ];

  const dayLimit = (type: BudgetLimitEvent['type'], limitTokens?: number): InStream<AgentFact> => [
    'budget-limit-day',
    fact<BudgetLimitEvent>(type, {
      ...{ scopeKey: 'day', limitTokens, limitMicroUsd: null, at: TIME },
      appliesBy: '2026-11-21T10:00:05.000Z',
    }),
  ];
  const onDay = (limitTokens: number, reservedAt = LATER): InStream<AgentFact> => [
    `budget-${uuid(5)}`,
    fact<BudgetEvent>('BudgetReserved', {
      ...{ agentId: 'x', agents: ['x'], reservedAt, sessionKey: 'x:ws:x:y' },
      scopes: [{ kind: 'day', key: 'day/2026-11-21', limitTokens, limitMicroUsd: null }],
    }) as AgentFact,
  ];

  it('finds a call that was admitted by another limit of the day than the one set at run time', () => {
    const set = dayLimit('BudgetLimitSet', 100);
    const removed = dayLimit('BudgetLimitRemoved');
    expect(find(treeBudgetsAreNested, [onDay(7), set, onDay(7, TIME), onDay(100)])).toEqual([]);
    expect(find(treeBudgetsAreNested, [set, removed, onDay(7)])).toEqual([]);
    expect(find(treeBudgetsAreNested, [set, dayLimit('BudgetLimitSet', 200), onDay(100, TIME)])).toEqual([]);
    expect(findInHalves(treeBudgetsAreNested, [set, onDay(100), onDay(7), onDay(100)])).toEqual([
      expect.stringContaining(
        'admitted with 7 tokens, null micro-USD of day/2026-11-21; in force was 100 tokens',
      ),
    ]);
    expect(find(treeBudgetsAreNested, [set, dayLimit('BudgetLimitSet', 200), onDay(7, TIME)])).toHaveLength(
      1,
    );
  });

  const queued = (n: number, budget: number | null, parent: number | null = null): InStream<AgentFact> => [
    `task-${uuid(n)}`,
    fact<TaskEvent>('TaskQueued', {
      ...{ taskId: uuid(n), parentTaskId: parent === null ? null : uuid(parent) },
      budget: budget === null ? null : { tokens: budget, microUsd: null },
    }),
  ];
  /** A call in the session of a task, by the limits of these tasks. */
  const taskCall = (n: number, scopes: Record<number, number>): InStream<AgentFact> => [
    `budget-${uuid(5)}`,
    fact<BudgetEvent>('BudgetReserved', {
      ...{ agentId: 'x', agents: ['x'], reservedAt: LATER, sessionKey: `x:task:${uuid(n)}:1` },
      scopes: Object.entries(scopes).map(([id, limitTokens]) => ({
        ...{ kind: 'task', key: `task/${uuid(Number(id))}`, limitTokens, limitMicroUsd: null },
      })),
    }) as AgentFact,
  ];
  const tasks: Facts = [queued(1, 100), queued(2, null, 1), queued(3, 40, 2)];

  it('finds nothing where a call names the budgets of its task and of those above', () => {
    const facts: Facts = [
      ...tasks,
      taskCall(1, { 1: 100 }),
      taskCall(2, { 1: 100 }),
      taskCall(3, { 3: 40, 1: 100 }),
    ];
    expect(find(treeBudgetsAreNested, facts)).toEqual([]);
    expect(findInHalves(treeBudgetsAreNested, facts)).toEqual([]);
  });

  it.each<[string, Facts, string]>([
    [
      'a task’s call without its budget',
      [...tasks, taskCall(1, {})],
      `violation 4 a call of x was admitted without the budget of task/${uuid(1)}`,
    ],
    [
      'a task’s call without the budget of a task above it',
      [...tasks, taskCall(3, { 3: 40 })],
      `violation 4 a call of x was admitted without the budget of task/${uuid(1)}`,
    ],
    [
      'a call by another limit than the budget',
      [...tasks, taskCall(1, { 1: 101 })],
      `violation 4 a call of x was admitted with 101 tokens, null micro-USD of task/${uuid(1)}, not its budget`,
    ],
  ])('reports %s', (_, facts, finding) => expect(find(treeBudgetsAreNested, facts)).toContain(finding));

  it('finds nothing where a call names the limits of its agent and of every ancestor', () => {
    const facts: Facts = [
      ...tree,
      reserved({ a: 50, root: 100 }),
      limit('root', 200),
      reserved({ a: 50, root: 200 }),
    ];
    expect(find(treeBudgetsAreNested, facts)).toEqual([]);
    expect(findInHalves(treeBudgetsAreNested, facts)).toEqual([]);
  });

  it('lets a call pass that was admitted by the former limit in the same seconds', () =>
    expect(
      find(treeBudgetsAreNested, [...tree, limit('root', 10), reserved({ a: 50, root: 100 }, TIME)]),
    ).toEqual([]));

  it.each<[string, Facts, string]>([
    [
      'a call without the limit of an ancestor',
      [...tree, reserved({ a: 50 })],
      'violation 5 a call of a was admitted with no limit of agent/root; in force was 100 tokens, null micro-USD',
    ],
    [
      'a new agent’s call without its own limit, at any time',
      [...tree, reserved({ root: 100 }, TIME)],
      'violation 5 a call of a was admitted with no limit of agent/a; in force was 50 tokens, null micro-USD',
    ],
    [
      'a call with a limit that is not in force',
      [...tree, reserved({ a: 51, root: 100 })],
      'violation 5 a call of a was admitted with 51 tokens, null micro-USD of agent/a; in force was 50 tokens, null micro-USD',
    ],
    [
      'a call by the former limit a minute later',
      [...tree, limit('root', 10), reserved({ a: 50, root: 100 })],
      'violation 6 a call of a was admitted with 100 tokens, null micro-USD of agent/root; in force was 10 tokens, null micro-USD',
    ],
    [
      'a call that is counted to another tree',
      [...tree, reserved({ a: 50, root: 100 }, LATER, ['a', 'x'])],
      'violation 5 a call of a of root names the agents a of x',
    ],
    [
      'a call by the limit of an agent that is no ancestor',
      [...tree, reserved({ a: 50, root: 100, b: 7 })],
      'violation 5 a call of a was admitted by the limit of agent/b',
    ],
  ])('reports %s', (_, facts, finding) => expect(find(treeBudgetsAreNested, facts)).toContain(finding));
});
