import type { SessionTurn } from '@antiphon/contracts/agent';
import type { SessionView } from '@antiphon/contracts/reference';
import { getJson, nextPageLine } from '../connection/http-client.js';
import { escapeText } from '../escape-text.js';
import type { CommandContext } from '../output.js';

export interface ListOptions {
  readonly agent?: string;
  readonly state?: string;
  readonly limit?: string;
  readonly cursor?: string;
  readonly at?: string;
}

interface SessionPage {
  readonly sessions: readonly SessionView[];
  readonly nextCursor: string | null;
}

const renderSession = ({ id, state, turns, key, title }: SessionView): string =>
  `${id}  ${state.padEnd(7)} ${turns} turns  ${escapeText(key)}  ${escapeText(title ?? '')}`.trimEnd();

/** Prints a page of sessions, the most recently active first. */
export const listSessions = async (
  { output, gateway }: CommandContext,
  options: ListOptions,
): Promise<void> => {
  const query = new URLSearchParams(Object.entries(options));
  const page = await getJson<SessionPage>(await gateway(), `/api/v1/sessions?${query}`);
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
  { output, gateway }: CommandContext,
  id: string,
  options: ShowOptions,
): Promise<void> => {
  const address = await gateway();
  const path = `/api/v1/sessions/${encodeURIComponent(id)}`;
  const query = new URLSearchParams(Object.entries(options));
  const session = await getJson<SessionView>(address, `${path}?${query}`);
  const page = await getJson<{ readonly turns: readonly SessionTurn[] }>(address, `${path}/turns?${query}`);
  const turns = page.turns.toReversed();
  const lines = [renderSession(session), ...turns.flatMap(renderTurn)];
  output.result({ session, turns }, lines.join('\n'));
};
