/** Ids and objects that the examples of the reference share. */
export const IDS = {
  session: '01998f3e-6c1a-7b52-9d0e-5a4c3b2a1f00',
  fork: '01998f40-11d3-7c84-8a6f-0b1c2d3e4f50',
  turn: '01998f3e-6c2b-7d10-8e4f-9a8b7c6d5e40',
  call: '01998f3e-7003-7e6a-b1c2-d3e4f5a6b7c8',
  approval: '01998f3e-7004-7a91-a2b3-c4d5e6f7a8b9',
  workflow: '01998f41-2a00-7f3c-9b8a-7c6d5e4f3a2b',
  run: '01998f41-9c55-70d7-8c9d-0e1f2a3b4c5d',
  event: '01998f3e-6c2f-7aa4-93b2-c1d0e9f8a7b6',
  task: '01998f42-1b00-7c3d-8e9f-a0b1c2d3e4f5',
  memory: '01998f42-3d22-7e5f-a0b1-c2d3e4f5a6b7',
  message: '01998f42-2c11-7d4e-9fa0-b1c2d3e4f5a6',
} as const;

const HASH = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
export const SESSION_KEY = 'support:web:main:alice';

export const STATUS = {
  status: 'ok',
  version: '0.1.0',
  uptime: 3_600,
  provider: { name: 'anthropic', kind: 'anthropic', model: 'claude-sonnet-4-5' },
  services: { agent: { healthy: true, service: 'agent', pid: 4_242, uptimeMs: 3_600_000, version: '0.1.0' } },
  engines: { postgres: { healthy: true }, nats: { healthy: true }, temporal: { healthy: true } },
  agentsInError: [],
  plugins: [{ name: 'calculator', kind: 'tool', status: 'loaded' }],
  sessions: 17,
  stale: [],
  features: { agent_runtime_v1: true, memory_v1: true, workers_v1: true },
  temporalUi: 'http://127.0.0.1:8233',
};

export const EVENT = {
  position: 1_024,
  category: 'session',
  streamId: `session-${IDS.session}`,
  streamVersion: 7,
  eventId: IDS.event,
  type: 'TurnFailed',
  schemaVersion: 1,
  severity: 'error',
  data: {
    turnId: IDS.turn,
    code: 'BUDGET.EXCEEDED',
    message: 'token budget exceeded (session: 9500/10000)',
    failedAt: '2026-11-22T10:15:00.000Z',
  },
  metadata: { correlationId: IDS.turn, service: 'agent', epoch: 3 },
  recordedAt: '2026-11-22T10:15:00.004Z',
  hash: HASH,
};

export const APPROVAL = {
  id: IDS.approval,
  status: 'pending',
  sessionId: IDS.session,
  turnId: IDS.turn,
  callId: IDS.call,
  agentId: 'support',
  rootId: 'support',
  path: ['support'],
  tool: 'http-get',
  input: { url: 'https://example.org/' },
  digest: HASH,
  preview: null,
  answerBy: 'operator',
  requestedAt: '2026-11-22T10:14:00.000Z',
  expiresAt: '2026-11-22T11:14:00.000Z',
  escalateTo: 'admin',
  escalatedAt: null,
  answeredBy: null,
  closedAt: null,
  reason: null,
  edited: null,
};

export const DEFINITION = {
  name: 'Research and summary',
  inputs: { topic: { description: 'Subject of the research' } },
  nodes: [
    { id: 'research', agent: 'researcher', prompt: 'Collect facts about {{inputs.topic}}.' },
    {
      id: 'summary',
      agent: 'support',
      prompt: 'Summarise in five sentences: {{nodes.research.output}}',
      needs: ['research'],
    },
  ],
};

/** The definition as the service returns it, with its defaults filled in. */
const STORED_DEFINITION = {
  ...DEFINITION,
  nodes: DEFINITION.nodes.map((node) => ({ needs: [], attempts: 3, ...node })),
};

export const WORKFLOW_SUMMARY = {
  id: IDS.workflow,
  name: DEFINITION.name,
  status: 'ready',
  version: 1,
  nodes: 2,
  updatedAt: '2026-11-22T10:20:00.000Z',
};

export const WORKFLOW = {
  ...WORKFLOW_SUMMARY,
  definition: STORED_DEFINITION,
  order: ['research', 'summary'],
  problem: null,
  lastRunId: null,
};

export const RUN_SUMMARY = {
  id: IDS.run,
  workflowId: IDS.workflow,
  name: DEFINITION.name,
  status: 'running',
  startedAt: '2026-11-22T10:21:00.000Z',
  endedAt: null,
};

export const RUN = {
  ...RUN_SUMMARY,
  workflowVersion: 1,
  inputs: { topic: 'tide tables' },
  tasks: [
    {
      id: 'research',
      agent: 'researcher',
      needs: [],
      status: 'running',
      attempt: 1,
      sessionId: IDS.session,
      turnId: IDS.turn,
      output: null,
      outputTruncated: false,
      error: null,
      startedAt: '2026-11-22T10:21:01.000Z',
      endedAt: null,
    },
  ],
};

export const FORK = {
  sessionId: IDS.fork,
  sessionKey: `support:fork:main:${IDS.fork}`,
  agentId: 'support',
  origin: { sessionId: IDS.session, version: 42 },
  purpose: 'fork',
  remakes: [],
};

export const KEY = {
  id: 'k7f3a2q5zr4mwx6b',
  workspace: 'default',
  name: 'ci',
  role: 'member',
  scopes: ['sessions:write'],
  agentId: null,
  status: 'active',
  createdBy: 'key/a2b3c4d5e6f7g2h3',
  createdAt: '2026-11-22T10:14:00.000Z',
  expiresAt: null,
  previousValidUntil: null,
} as const;

export const ISSUED_KEY = { ...KEY, token: `ak_${KEY.id}_${'A'.repeat(43)}` } as const;

export const WORKSPACE = {
  id: 'acme',
  name: 'Acme',
  createdBy: 'key/a2b3c4d5e6f7g2h3',
  createdAt: '2026-11-22T10:15:00.000Z',
} as const;

export const CREDENTIAL = {
  provider: 'anthropic',
  masterKeyId: '4d1f0c6f8a3b2e57',
  createdBy: 'key/a2b3c4d5e6f7g2h3',
  createdAt: '2026-11-22T10:16:00.000Z',
} as const;

/** Signature of a report of an audit or a backup. */
export const PROOF_EXAMPLE = {
  signedAt: '2026-11-22T10:00:00.000Z',
  keyId: '5f2c9a1b3d4e5f60',
  signature: 'nJ2kQf8m0VtXbTz3l6oYw2d1r9HkqLrZQmHfUuB4sV8pWc7Ee5aGyXo1NtRjKi3SxMvDlPqCzAhFgTbYuWe0Dw==',
};
