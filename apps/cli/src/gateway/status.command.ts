import { AppError, isAppError } from '@antiphon/kernel';
import { endedProcesses, readStack } from '@antiphon/stack/stack-json';
import type { StackJson } from '@antiphon/stack/stack-json';
import type { Command } from 'commander';
import { homeOf } from '../connection/gateway-address.js';
import { getJson } from '../connection/http-client.js';
import type { ContextOf } from '../output.js';

interface Health {
  readonly healthy: boolean;
  readonly error?: string;
  readonly detail?: string;
  readonly pid?: number;
  readonly facts?: {
    readonly configurationProblem?: string;
    readonly pausedProviders?: readonly { readonly provider: string; readonly until: string }[];
  };
}
interface Status {
  readonly status: string;
  readonly version: string;
  readonly uptime: number;
  readonly provider: { readonly name: string; readonly kind: string; readonly model: string };
  readonly services: Readonly<Record<string, Health>>;
  readonly engines: Readonly<Record<string, Health>>;
  readonly plugins: readonly { readonly name: string; readonly status: string }[] | null;
  readonly sessions: number | null;
  readonly temporalUi: string | null;
}

const healthLines = (group: Readonly<Record<string, Health>>): string[] =>
  Object.entries(group).map(
    ([name, { healthy, pid, error, detail }]) =>
      `  ${name.padEnd(12)}${healthy ? 'ok' : `DOWN ${error ?? detail ?? ''}`}${pid === undefined ? '' : `  pid ${pid}`}`,
  );

/** Lists the services that use the last good configuration, because the file is broken. */
const configurationLines = (services: Status['services']): string[] =>
  Object.entries(services).flatMap(([name, { facts }]) =>
    facts?.configurationProblem === undefined
      ? []
      : [`config      ${name} uses the last good one: ${facts.configurationProblem}`],
  );

const render = (status: Status): string =>
  [
    `antiphon ${status.version}: ${status.status}, up ${status.uptime} s, ${status.sessions ?? '?'} sessions`,
    `provider    ${status.provider.name} (${status.provider.kind}), model ${status.provider.model}`,
    ...(status.services['agent']?.facts?.pausedProviders ?? []).map(
      ({ provider, until }) => `paused      ${provider} until ${until}, after repeated failures`,
    ),
    ...configurationLines(status.services),
    'services',
    ...healthLines(status.services),
    'engines',
    ...healthLines(status.engines),
    ...(status.temporalUi === null ? [] : [`temporal UI ${status.temporalUi}`]),
    `plug-ins    ${(status.plugins ?? []).map(({ name, status: state }) => `${name} ${state}`).join(', ')}`,
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
      const { output, gateway, env, cwd } = context(command);
      const address = await gateway();
      const status = await getJson<Status>(address, '/api/v1/health').catch((error: unknown) => {
        throw withEndedProcesses(error, readStack(homeOf(env, cwd)), address.url);
      });
      output.result(status, render(status));
    });
};
