import type { AgentStateChange, AgentView, TaskItem, WorkspaceMessage } from '@antiphon/contracts/agent';
import { invalid } from '@antiphon/kernel';
import type { z } from 'zod';
import type { Output } from '../output.js';

/** Time after which a command says what it waits for, ms. */
const SLOW_MS = 2_000;
const MAX_TEXT = 2_000;
const MICRO_USD = 1_000_000;

/** Runs work. Prints a note to standard error if the work takes over two seconds. */
export const withProgress = async <T>(output: Output, text: string, work: Promise<T>): Promise<T> => {
  const timer = setTimeout(() => output.note(`${text} …`), SLOW_MS);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
};

/** Renders rows as columns that are as wide as their widest cell. */
export const renderTable = (header: readonly string[], rows: readonly (readonly string[])[]): string => {
  const widths = header.map((name, i) => Math.max(name.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const lines = [header, ...rows].map((row) => row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  '));
  return lines.map((line) => line.trimEnd()).join('\n');
};

/** Splits a list of names at its commas. */
export const splitNames = (text: string): string[] =>
  text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

/** Parses a whole number of an option. Throws `CLI.USAGE`. */
export const parseWhole = (option: string, text: string): number => {
  if (!/^\d{1,15}$/.test(text)) throw invalid('CLI.USAGE', `${option} ${text}: expected a whole number`);
  return Number(text);
};

interface BudgetOptions {
  readonly budgetTokens?: string;
  readonly budgetUsd?: string;
}

/** Returns the budget of two options, undefined for neither. Throws `CLI.USAGE`. */
export const parseBudget = ({ budgetTokens: tokens, budgetUsd: usd }: BudgetOptions) => {
  if (tokens === undefined && usd === undefined) return undefined;
  if (usd !== undefined && !(Number(usd) > 0))
    throw invalid('CLI.USAGE', `--budget-usd ${usd}: expected US dollars, such as 0.50`);
  return {
    ...(tokens === undefined ? {} : { tokens: parseWhole('--budget-tokens', tokens) }),
    ...(usd === undefined ? {} : { microUsd: Math.round(Number(usd) * MICRO_USD) }),
  };
};

const stateOf = ({ state, phase, queued }: AgentView): string => {
  if (queued !== null) return `${state} (queued ${queued.position})`;
  return phase === null ? state : `${state} (${phase})`;
};

/** Renders agents as a table. */
export const renderAgents = (agents: readonly AgentView[]): string =>
  renderTable(
    ['ID', 'STATE', 'MODEL', 'PROJECT', 'PARENT', 'NAME'],
    agents.map((agent) => [
      agent.id,
      stateOf(agent),
      agent.model,
      agent.project ?? '-',
      agent.parentId ?? '-',
      agent.name,
    ]),
  );

const budgetOf = ({ budget }: AgentView): string | null => {
  if (budget === null) return null;
  const { tokens, microUsd } = budget;
  const parts = [
    ...(tokens === null ? [] : [`${tokens} tokens`]),
    ...(microUsd === null ? [] : [`${microUsd / MICRO_USD} USD`]),
  ];
  return parts.length === 0 ? null : `${parts.join(', ')}, with its descendants`;
};

const renderFields = (fields: readonly (readonly [string, string | null])[]): string[] =>
  fields.flatMap(([name, value]) => (value === null || value === '' ? [] : [`  ${name.padEnd(13)}${value}`]));

/** Renders one agent with its fields. */
export const renderAgent = (agent: AgentView): string =>
  [
    `${agent.id} (${agent.name}): ${stateOf(agent)}`,
    ...renderFields([
      ['reason', agent.reason],
      ['role', agent.role],
      ['model', `${agent.provider}/${agent.model}`],
      ['capabilities', agent.capabilities.join(', ')],
      ['tools', agent.tools.join(', ')],
      ['project', agent.project],
      ['position', agent.position],
      ['base', agent.base === agent.id ? null : agent.base],
      ['parent', agent.parentId],
      ['tree', agent.rootId === agent.id ? null : `${agent.rootId}, depth ${agent.depth}`],
      ['budget', budgetOf(agent)],
      ['spawned', `${agent.spawnedAt} by ${agent.spawnedBy}`],
      ['last seen', agent.lastSeenAt],
      ['last turn', agent.lastTurnAt ?? null],
      ['result', agent.result === null ? null : `${agent.result.status}: ${agent.result.text}`],
    ]),
  ].join('\n');

/** Renders a change of an agent's state as one line. */
export const renderChange = ({
  at,
  from,
  to,
  phase,
  actor,
  reason,
}: z.infer<typeof AgentStateChange>): string => {
  const change = `${from ?? '(new)'} -> ${to}${phase === null ? '' : ` (${phase})`}`;
  return `${at}  ${change.padEnd(32)} by ${actor}${reason === null ? '' : `: ${reason}`}`;
};

/** Renders tasks as a table. */
export const renderTasks = (tasks: readonly TaskItem[]): string =>
  renderTable(
    ['ID', 'STATE', 'PRIORITY', 'WORKER', 'QUEUED AT', 'TITLE'],
    tasks.map(({ id, state, priority, worker, agentId, queuedAt, title }) => [
      id,
      state,
      String(priority),
      worker ?? agentId ?? '-',
      queuedAt,
      title.replace(/\s+/g, ' ').slice(0, 60),
    ]),
  );

/** Renders one task with its fields and its result. */
export const renderTask = (task: TaskItem): string =>
  [
    `${task.id}: ${task.state}`,
    ...renderFields([
      ['title', task.title.replace(/\s+/g, ' ')],
      ['priority', String(task.priority)],
      ['capabilities', task.capabilities.join(', ')],
      ['worker', task.worker ?? task.agentId],
      ['claims', task.epoch === 0 ? null : String(task.epoch)],
      ['project', task.project],
      ['parent', task.parentTaskId ?? task.parentAgentId],
      ['retry of', task.retryOf ?? null],
      ['retried by', task.retriedBy ?? null],
      ['deadline', task.deadline],
      ['session', task.sessionId],
      ['queued', task.queuedAt],
      ['started', task.startedAt],
      ['ended', task.endedAt],
      ['error', task.result?.code ?? null],
    ]),
    ...task.strikes.map((message, i) => `  strike ${i + 1}: ${message}`),
    ...(!task.result?.text ? [] : [task.result.text.slice(0, MAX_TEXT).replace(/^/gm, '    ')]),
  ].join('\n');

/** Renders a message as one line. */
export const renderMessage = ({
  sentAt,
  from,
  to,
  type,
  content,
  isRead,
}: z.infer<typeof WorkspaceMessage>): string => {
  const target = to.kind === 'agent' ? to.agentId : to.kind === 'topic' ? `topic ${to.topic}` : 'everyone';
  const text = typeof content['text'] === 'string' ? content['text'] : JSON.stringify(content);
  const mark = isRead === null ? '-     ' : isRead ? 'read  ' : 'unread';
  return `${sentAt}  ${mark}  ${from} -> ${target}  ${type}: ${text.replace(/\s+/g, ' ').slice(0, 200)}`;
};
