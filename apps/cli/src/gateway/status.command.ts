import type { RouteReply } from '@antiphon/client';
import { AppError, isAppError } from '@antiphon/kernel';
import { endedProcesses, readStack } from '@antiphon/stack/stack-json';
import type { StackJson } from '@antiphon/stack/stack-json';
import type { Command } from 'commander';
import { homeOf } from '../connection/gateway-address.js';
import type { ContextOf } from '../output.js';

type Status = RouteReply<'health'>;

/** Facts that a service adds to its health. */
interface Facts {
  readonly configurationProblem?: string;
  readonly pausedProviders?: readonly { readonly provider: string; readonly until: string }[];
}
type Plugins = readonly { readonly name: string; readonly status: string }[];

interface Health {
  readonly healthy: boolean;
  readonly error?: string | undefined;
  readonly detail?: string | undefined;
  readonly pid?: number | undefined;
}

const healthLines = (group: Readonly<Record<string, Health>>): string[] =>
  Object.entries(group).map(
    ([name, { healthy, pid, error, detail }]) =>
      `  ${name.padEnd(12)}${healthy ? 'ok' : `DOWN ${error ?? detail ?? ''}`}${pid === undefined ? '' : `  pid ${pid}`}`,
  );

/** Lists the services that use the last good configuration, because the file is broken. */
const configurationLines = (services: Status['services']): string[] =>
  Object.entries(services).flatMap(([name, { facts }]) => {
    const { configurationProblem: problem } = (facts ?? {}) as Facts;
    return problem === undefined ? [] : [`config      ${name} uses the last good one: ${problem}`];
  });

const render = (status: Status): string =>
  [
    `antiphon ${status.version}: ${status.status}, up ${status.uptime} s, ${status.sessions ?? '?'} sessions`,
    `provider    ${status.provider.name} (${status.provider.kind}), model ${status.provider.model}`,
    ...((status.services['agent']?.facts as Facts | undefined)?.pausedProviders ?? []).map(
      ({ provider, until }) => `paused      ${provider} until ${until}, after repeated failures`,
    ),
    ...(status.agentsInError ?? []).map(
      ({ agentId, code, retryAt }) =>
        `in error    agent ${agentId} after ${code}: its turns wait until ${retryAt} (antiphon agent resume ${agentId})`,
    ),
    ...configurationLines(status.services),
    'services',
    ...healthLines(status.services),
    'engines',
    ...healthLines(status.engines),
    ...(status.temporalUi === null ? [] : [`temporal UI ${status.temporalUi}`]),
    `plug-ins    ${((status.plugins ?? []) as unknown as Plugins).map(({ name, status: state }) => `${name} ${state}`).join(', ')}`,
  ].join('\n');

/** Adds the ended processes of this home to an error that its gateway does not respond. */
const withEndedProcesses = (error: unknown, stack: StackJson | null, url: string): unknown => {
  if (!isAppError(error) || error.code !== 'CLI.UNREACHABLE') return error;
  const ended = stack?.urls.gateways.includes(url) ? endedProcesses(stack) : [];
  if (ended.length === 0) return error;
  const message = `${error.message}. Ended processes of this home: ${ended.join(', ')}`;
  return new AppError(error.kind, error.code, message, { cause: error.cause });
};

/** Adds `antiphon status`. */
export const addStatus = (program: Command, context: ContextOf): void => {
  program
    .command('status')
    .description('show version, provider, services, engines, plug-ins and sessions')
    .addHelpText('after', '\nExample:\n  antiphon status --json | jq .services')
    .action(async (_: unknown, command: Command) => {
      const { output, gateway, http, env, cwd } = context(command);
      const { health } = await http();
      const status = await health().catch(async (error: unknown) => {
        throw withEndedProcesses(error, readStack(homeOf(env, cwd)), (await gateway()).url);
      });
      output.result(status, render(status));
    });
};
