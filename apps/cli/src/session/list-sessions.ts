import type { RouteRequest } from '@antiphon/client';
import type { SessionTurn } from '@antiphon/contracts/agent';
import type { SessionView } from '@antiphon/contracts/reference';
import { nextPageLine } from '../connection/gateway-http.js';
import { escapeText } from '../escape-text.js';
import type { CommandContext } from '../output.js';

export interface ListOptions {
  readonly agent?: string;
  readonly agentPart?: string;
  readonly state?: string;
  readonly q?: string;
  readonly since?: string;
  readonly until?: string;
  readonly forkedFrom?: string;
  readonly limit?: string;
  readonly cursor?: string;
  readonly at?: string;
}

/** `1 turn`, `2 turns`. */
export const countTurns = (turns: number): string => `${turns} ${turns === 1 ? 'turn' : 'turns'}`;

const renderSession = ({ id, state, turns, key, title }: SessionView): string =>
  `${id}  ${state.padEnd(7)} ${countTurns(turns)}  ${escapeText(key)}  ${escapeText(title ?? '')}`.trimEnd();

/** Prints a page of sessions, the most recently active first. */
export const listSessions = async ({ output, http }: CommandContext, options: ListOptions): Promise<void> => {
  const page = await (await http()).listSessions({ query: options as RouteRequest<'listSessions'>['query'] });
  const lines = page.sessions.length === 0 ? ['no sessions'] : page.sessions.map(renderSession);
  output.result(page, [...lines, ...nextPageLine(page.nextCursor)].join('\n'));
};

export interface ShowOptions {
  readonly at?: string;
}

const renderTurn = ({ status, message, items }: SessionTurn): string[] => [
  `> ${escapeText(message.text)}  (${status})`,
  ...items.flatMap((item) => {
    if (item.kind === 'text') return [`  ${escapeText(item.text)}`];
    return item.kind === 'tool' ? [`  ${item.name}: ${item.status}`] : [];
  }),
];

/** Prints a session and its latest turns, the oldest of them first. */
export const showSession = async (
  { output, http }: CommandContext,
  id: string,
  options: ShowOptions,
): Promise<void> => {
  const { getSession, readTurns } = await http();
  const request = { params: { id }, query: options };
  const session = await getSession(request);
  const page = await readTurns(request);
  const turns = page.turns.toReversed();
  const lines = [renderSession(session), ...turns.flatMap(renderTurn)];
  output.result({ session, turns }, lines.join('\n'));
};
