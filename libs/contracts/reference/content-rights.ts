import type { AGENT_FRAME_KINDS } from '../gateway/index.js';
import type { Permission } from '../identity/index.js';
import type { Category } from '../log/index.js';
import type { FrameEvent } from '../agent/frames.js';

/** Kinds of files that are built on read. */
export const VIRTUAL_FILE_KINDS = ['chat'] as const;

type Rights<Kind extends string> = Readonly<Record<Kind, Permission>>;

/** Rights to the data of events. The other fields of an event need `events:read` only. */
const EVENTS: Rights<Category> = {
  session: 'sessions:read',
  chat: 'sessions:read',
  channel: 'sessions:read',
  agent: 'agents:read',
  run: 'runs:read',
  task: 'runs:read',
  workflow: 'runs:read',
  plan: 'runs:read',
  file: 'files:read',
  provider: 'agents:read',
  budget: 'budgets:read',
  memory: 'memory:read',
  plugin: 'plugins:read',
  workspace: 'events:read',
  key: 'keys:manage',
};

/** Rights to the frames of `agent.subscribe`. */
const AGENT_FRAMES: Rights<(typeof AGENT_FRAME_KINDS)[number]> = {
  state: 'agents:read',
  progress: 'agents:read',
  blocked: 'approvals:read',
  plan: 'runs:read',
  memory: 'memory:read',
  // They have costs.
  metrics: 'budgets:read',
};

/** Rights to the frames of a session, by a socket or as events of a chat. */
const SESSION_FRAMES: Rights<FrameEvent> = {
  accepted: 'sessions:read',
  blocked: 'sessions:read',
  text: 'sessions:read',
  thought: 'sessions:read',
  tool_use: 'sessions:read',
  progress: 'sessions:read',
  approval: 'sessions:read',
  approval_update: 'sessions:read',
  tool_result: 'sessions:read',
  usage: 'sessions:read',
  error: 'sessions:read',
  restart: 'sessions:read',
  done: 'sessions:read',
};

/** Rights to files that are built on read, in addition to `files:read`. */
const VIRTUAL_FILES: Rights<(typeof VIRTUAL_FILE_KINDS)[number]> = { chat: 'sessions:read' };

/**
 * Right that each kind of content needs, by whichever route, socket method or frame it is read. A
 * new kind needs a row.
 */
export const CONTENT_RIGHTS = {
  event: EVENTS,
  agentFrame: AGENT_FRAMES,
  sessionFrame: SESSION_FRAMES,
  virtualFile: VIRTUAL_FILES,
} as const;

/** Returns the right to the data of an event. A category of a newer release needs an operator. */
export const rightOfEvent = (category: string): Permission =>
  Object.hasOwn(EVENTS, category) ? EVENTS[category as Category] : 'operations:write';
