import { randomUUID } from 'node:crypto';
import { invalid } from '@antiphon/kernel';
import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../command-context.js';
import type { GatewayAddress } from '../connection/gateway-address.js';
import { askJson } from '../connection/http-client.js';

/** What the gateway answers to a fork. */
export interface ForkReply {
  readonly sessionId: string;
  readonly agentId: string;
  readonly origin: { readonly sessionId: string; readonly version: number };
  readonly remakes: readonly { readonly turnId: string; readonly of: string }[];
}

export interface ForkOptions {
  readonly at?: string;
  readonly agent?: string;
  readonly provider?: string;
  readonly model?: string;
  readonly key?: string;
}

/** A number of the command line, from 1; throws `CLI.USAGE`. */
export const countOf = (option: string, value: string): number => {
  if (/^[1-9]\d{0,8}$/.test(value)) return Number(value);
  throw invalid('CLI.USAGE', `${option} ${value}: say a number from 1`);
};

/** Asks for a fork; the same `--key` again is the same fork. */
export const requestFork = async (
  gateway: GatewayAddress,
  session: string,
  { at, agent, provider, model, key }: ForkOptions,
  whatIf?: { readonly turns: number },
): Promise<ForkReply> => {
  const named = { agent, provider, model, whatIf };
  const given = Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined));
  const body = { ...given, ...(at === undefined ? {} : { atVersion: countOf('--at', at) }) };
  const path = `/api/v1/sessions/${encodeURIComponent(session)}/fork`;
  const asked = { method: 'POST', body, idempotencyKey: key ?? randomUUID() } as const;
  return (await askJson(gateway, path, asked)) as ForkReply;
};

const fork = async (
  { output, gateway }: CommandContext,
  session: string,
  options: ForkOptions,
): Promise<void> => {
  const reply = await requestFork(gateway(), session, options);
  output.result(reply, reply.sessionId);
};

/** The options of every command that forks. */
export const addForkOptions = (command: Command): Command =>
  command
    .option('--at <n>', 'behind the event of this version of the session')
    .option('--agent <id>', 'another agent')
    .option('--provider <name>', "the model's provider, of antiphon.toml (default: the agent's)")
    .option('--key <key>', 'an idempotency key: the same again is the same fork');

/** `antiphon session fork <session> [--at N] [--model M]` */
export const addFork = (session: Command, context: ContextOf): void => {
  addForkOptions(session.command('fork <session>'))
    .description(
      'a new session that goes on from this one as it was: its last turns, and what memory believed',
    )
    .option('--model <name>', "another model than the agent's")
    .addHelpText(
      'after',
      '\nA session can be cut between its turns; without --at it is cut behind the last one. The origin is never touched.\n\nExamples:\n  antiphon session fork 0d6c… --at 12\n  antiphon chat --session $(antiphon session fork 0d6c… --model gpt-4o) "and now?"',
    )
    .action((id: string, options: ForkOptions, command: Command) => fork(context(command), id, options));
};
