import { setTimeout as sleep } from 'node:timers/promises';
import type { TurnEndType } from '@antiphon/contracts/agent';
import type { SessionExport } from '@antiphon/contracts/log';
import { rejected, transient } from '@antiphon/kernel';
import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../command-context.js';
import type { GatewayAddress } from '../connection/gateway-address.js';
import { compareSessions } from './compare-sessions.js';
import { renderComparison } from './diff-sessions.js';
import { fetchExport } from './export-session.js';
import { addForkOptions, countOf, requestFork, type ForkOptions, type ForkReply } from './fork-session.js';

interface WhatIfOptions extends ForkOptions {
  readonly turns: string;
}

const POLL_MS = 250;
/** As long as one attempt at a model call may take, and something. */
const PATIENCE_MS = 15 * 60_000;

/** A typed copy of the contract's list: loading the contracts would slow down every command. */
const TURN_ENDS: Readonly<Record<TurnEndType, true>> = {
  TurnCompleted: true,
  TurnFailed: true,
  TurnCancelled: true,
};

const endsOf = ({ events }: SessionExport) => events.filter(({ type }) => Object.hasOwn(TURN_ENDS, type));

/** The fork once all of its turns have ended. */
const awaitTurns = async (
  gateway: GatewayAddress,
  { sessionId, remakes }: ForkReply,
): Promise<SessionExport> => {
  const until = Date.now() + PATIENCE_MS;
  for (;;) {
    const { record } = await fetchExport(gateway, sessionId);
    if (endsOf(record).length >= remakes.length) return record;
    if (Date.now() > until)
      throw transient(
        'CLI.TIMEOUT',
        `session ${sessionId} is still at work. What to do: antiphon session diff later`,
      );
    await sleep(POLL_MS);
  }
};

const whatIf = async (
  { output, gateway }: CommandContext,
  session: string,
  options: WhatIfOptions,
): Promise<void> => {
  const address = gateway();
  const turns = countOf('--turns', options.turns);
  const made = await requestFork(address, session, options, { turns });
  const [origin, again] = [(await fetchExport(address, session)).record, await awaitTurns(address, made)];
  const comparison = compareSessions(origin, again, made.remakes);
  output.result(
    { ...made, comparison },
    [`what-if ${made.sessionId}, from version ${made.origin.version}`, renderComparison(comparison)].join(
      '\n',
    ),
  );
  const failed = endsOf(again).find(({ type }) => type === 'TurnFailed');
  if (failed)
    throw rejected(String(failed.data['code']), `the what-if stopped: ${String(failed.data['message'])}`);
};

/** `antiphon session whatif <session> --model M [--at N] [--turns K]` */
export const addWhatIf = (session: Command, context: ContextOf): void => {
  addForkOptions(session.command('whatif <session>'))
    .description('make turns again with another model, in a fork; tools answer from the record')
    .requiredOption('--model <name>', 'the model that is asked, for real and within the budgets')
    .option('--turns <n>', 'how many of the turns behind the cut are made again', '1')
    .addHelpText(
      'after',
      '\nWithout --at the last turn is made again. A tool call that the record does not have ends the turn: no tool is run.\n\nExamples:\n  antiphon session whatif 0d6c… --model gpt-4o --provider openai\n  antiphon session whatif 0d6c… --model claude-haiku --at 12 --turns 3 --json | jq .comparison.turns',
    )
    .action((id: string, options: WhatIfOptions, command: Command) => whatIf(context(command), id, options));
};
