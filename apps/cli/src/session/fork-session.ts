import { withMessage } from '@antiphon/contracts/causes';
import { randomUUID } from 'node:crypto';
import { isTurnEnd } from '@antiphon/contracts/agent';
import type { SessionExport } from '@antiphon/contracts/log';
import { invalid, rejected, sleep, transient } from '@antiphon/kernel';
import type { HttpClient, RouteReply } from '@antiphon/client/http';
import type { CommandContext } from '../output.js';
import { compareSessions } from './compare-sessions.js';
import { renderComparison } from './diff-sessions.js';
import { fetchExport } from './export-session.js';

type ForkReply = RouteReply<'forkSession'>;

export interface ForkOptions {
  readonly at?: string;
  readonly agent?: string;
  readonly provider?: string;
  readonly model?: string;
  readonly key?: string;
}

export interface WhatIfOptions extends ForkOptions {
  readonly turns: string;
}

const POLL_MS = 250;
/** Timeout of a what-if: longer than the timeout of one model call. */
const WHATIF_TIMEOUT_MS = 15 * 60_000;

/** Parses a positive number of the command line. Throws `CLI.USAGE`. */
const parseCount = (option: string, value: string): number => {
  if (/^[1-9]\d{0,8}$/.test(value)) return Number(value);
  throw invalid('CLI.USAGE', `${option} ${value}: expected a number from 1`);
};

/** Requests a fork. Requests with the same `--key` create one fork. */
const requestFork = (
  http: HttpClient,
  session: string,
  { at, agent, provider, model, key }: ForkOptions,
  whatIf?: { readonly turns: number },
): Promise<ForkReply> => {
  const atVersion = at === undefined ? undefined : parseCount('--at', at);
  return http.forkSession({
    params: { id: session },
    body: { agent, provider, model, whatIf, atVersion },
    idempotencyKey: key ?? randomUUID(),
  });
};

/** Forks a session and prints the id of the new one. */
export const forkSession = async (
  { output, http: open }: CommandContext,
  session: string,
  options: ForkOptions,
): Promise<void> => {
  const reply = await requestFork(await open(), session, options);
  output.result(reply, reply.sessionId);
};

const turnEndsOf = ({ events }: SessionExport) => events.filter(({ type }) => isTurnEnd(type));

/** Waits until all turns of the fork have ended and returns its export. */
const waitForTurns = async (http: HttpClient, { sessionId, remakes }: ForkReply): Promise<SessionExport> => {
  const deadline = Date.now() + WHATIF_TIMEOUT_MS;
  for (;;) {
    const { record } = await fetchExport(http, sessionId);
    if (turnEndsOf(record).length >= remakes.length) return record;
    if (Date.now() > deadline)
      throw transient(
        'CLI.TIMEOUT',
        `session ${sessionId} still runs after 15 minutes. What to do: run \`antiphon session diff\` later`,
      );
    await sleep(POLL_MS);
  }
};

/** Repeats turns in a fork with another model and prints how they differ. */
export const runWhatIf = async (
  { output, http: open }: CommandContext,
  session: string,
  options: WhatIfOptions,
): Promise<void> => {
  const http = await open();
  const turns = parseCount('--turns', options.turns);
  const fork = await requestFork(http, session, options, { turns });
  const { record: origin } = await fetchExport(http, session);
  const repeated = await waitForTurns(http, fork);
  const comparison = compareSessions(origin, repeated, fork.remakes);
  output.result(
    { ...fork, comparison },
    `what-if ${fork.sessionId}, from version ${fork.origin.version}\n${renderComparison(comparison)}`,
  );
  const failed = turnEndsOf(repeated).find(({ type }) => type === 'TurnFailed');
  if (failed)
    throw rejected(
      String(failed.data['code']),
      `the what-if stopped: ${String(withMessage(failed.data)['message'])}`,
    );
};
