import { IDS } from './examples.js';

export const AGENT = {
  id: 'support',
  name: 'Support',
  role: 'support',
  provider: 'anthropic',
  model: 'claude-sonnet-4-5',
  tools: ['calculator', 'http-get'],
  capabilities: ['billing'],
  position: 'first line',
  project: null,
  state: 'idle',
  phase: null,
  reason: null,
  origin: 'configuration',
  base: 'support',
  parentId: null,
  rootId: 'support',
  depth: 0,
  queued: null,
  budget: null,
  spawnedAt: '2026-11-22T10:00:00.000Z',
  spawnedBy: 'configuration',
  lastSeenAt: '2026-11-22T10:15:00.000Z',
  lastTurnAt: '2026-11-22T10:15:02.000Z',
  result: null,
  isDefault: true,
};

export const SPAWNED_AGENT = {
  ...AGENT,
  id: 'researcher-7f3a',
  name: 'Researcher',
  role: null,
  capabilities: ['research'],
  position: null,
  project: 'website',
  origin: 'request',
  rootId: 'researcher-7f3a',
  spawnedAt: '2026-11-22T10:20:00.000Z',
  spawnedBy: 'key/k7f3a2q5zr4mwx6b',
  lastSeenAt: null,
  lastTurnAt: null,
  isDefault: false,
};

export const AGENT_CHANGE = {
  from: 'idle',
  to: 'paused',
  phase: null,
  actor: 'key/k7f3a2q5zr4mwx6b',
  reason: 'waits for the customer',
  eventId: IDS.event,
  eventPosition: 1_030,
  at: '2026-11-22T10:21:00.000Z',
};

export const AGENT_METRICS = {
  at: '2026-11-22T10:21:00.000Z',
  cpuMs: 42.5,
  memoryBytes: 8_388_608,
  diskBytes: 65_536,
  diskReadBytes: 4_096,
  diskWrittenBytes: 8_192,
  turns: 1,
  modelCalls: 2,
  toolCalls: 1,
  inputTokens: 1_624,
  outputTokens: 128,
};

export const METRICS_OF_AGENT = {
  agentId: SPAWNED_AGENT.id,
  latest: AGENT_METRICS,
  recent: [{ at: AGENT_METRICS.at, cpuMs: 42.5, memoryBytes: 8_388_608, diskBytes: 65_536 }],
  today: { calls: 12, settledTokens: 48_210, settledMicroUsd: 215_300 },
};

export const TASK = {
  id: IDS.task,
  kind: 'task',
  title: 'Collect facts about tide tables.',
  state: 'running',
  priority: 3,
  capabilities: ['research'],
  agentId: SPAWNED_AGENT.id,
  worker: `agent/${SPAWNED_AGENT.id}`,
  epoch: 1,
  strikes: [],
  project: 'website',
  parentAgentId: null,
  parentTaskId: null,
  retryOf: null,
  retriedBy: null,
  deadline: null,
  sessionId: null,
  turnId: null,
  queuedAt: '2026-11-22T10:20:30.000Z',
  startedAt: '2026-11-22T10:20:31.000Z',
  endedAt: null,
  result: null,
};

/** The same task, for an external worker. */
export const EXTERNAL_TASK = {
  ...TASK,
  state: 'assigned',
  agentId: null,
  worker: 'key/k7f3a2q5zr4mwx6b',
};

export const AGENT_MESSAGE = {
  messageId: IDS.message,
  type: 'AgentSpoke',
  from: 'agent/support',
  to: { kind: 'agent', agentId: SPAWNED_AGENT.id },
  content: { text: 'Please look at the tide tables first.' },
  causeId: IDS.event,
  sentAt: '2026-11-22T10:20:40.000Z',
  logPosition: 1_028,
  isRead: true,
};
