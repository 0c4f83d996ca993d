import type { RouteRequest } from '@antiphon/client';
import type { Role } from '@antiphon/contracts/identity';
import type { IssuedKey, KeyView } from '@antiphon/contracts/keys';
import { invalid } from '@antiphon/kernel';
import type { Command } from 'commander';
import { nextPageLine } from '../connection/gateway-http.js';
import type { CommandContext, ContextOf } from '../output.js';

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** Parses a duration such as `90m` as seconds, or returns null. */
const parseDuration = (text: string): number | null => {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  return count === undefined || unit === undefined ? null : Number(count) * (UNIT_SECONDS[unit] ?? 1);
};

/** Parses a time of an option: a duration from now, or a time. Throws `CLI.USAGE`. */
export const parseTime = (option: string, text: string): string => {
  const seconds = parseDuration(text);
  const time = seconds === null ? Date.parse(text) : Date.now() + seconds * 1_000;
  if (Number.isNaN(time))
    throw invalid(
      'CLI.USAGE',
      `${option} ${text}: expected a duration such as 30d or 12h, or an ISO 8601 time`,
    );
  return new Date(time).toISOString();
};

const parseOverlap = (text: string): number => {
  const seconds = parseDuration(text) ?? (/^\d{1,9}$/.test(text) ? Number(text) : null);
  if (seconds === null)
    throw invalid('CLI.USAGE', `--overlap ${text}: expected a duration such as 10m, or seconds`);
  return seconds;
};

/** Renders a key that was issued now: its text appears here and nowhere else. */
export const renderIssued = ({ id, name, workspace, role, token }: IssuedKey): string =>
  [
    `key ${id} (${name}): ${role} of workspace ${workspace}`,
    token ?? 'its secret was shown when the key was created; `antiphon key rotate` gives it a new one',
    ...(token === null ? [] : ['Keep it now: it is not shown again. Send it as `Authorization: Bearer`.']),
  ].join('\n');

const renderKey = ({ id, name, role, scopes, agentId, status, expiresAt }: KeyView): string =>
  [
    `${id}  ${status.padEnd(8)} ${role.padEnd(9)} ${name}`,
    ...(scopes === null ? [] : [`scopes ${scopes.join(',')}`]),
    ...(agentId === null ? [] : [`agent ${agentId}`]),
    ...(expiresAt === null ? [] : [`until ${expiresAt}`]),
  ].join('  ');

interface CreateOptions {
  readonly role?: string;
  readonly scopes?: string;
  readonly agent?: string;
  readonly expires?: string;
  readonly workspace?: string;
}

/** Returns the least privileged role that has all scopes, from `member` on. */
const leastRole = async (scopes: readonly string[]): Promise<Role | undefined> => {
  if (scopes.length === 0) return undefined;
  const { ROLES, ROLE_PERMISSIONS } = await import('@antiphon/contracts/identity');
  return ROLES.filter((role) => role !== 'viewer').find((role) =>
    scopes.every((scope) => ROLE_PERMISSIONS[role].some((permission) => permission === scope)),
  );
};

const create = async (
  { output, http }: CommandContext,
  name: string,
  { role, scopes, agent: agentId, expires, workspace }: CreateOptions,
): Promise<void> => {
  const limits = scopes?.split(',').map((scope) => scope.trim());
  const body = {
    name,
    role: role ?? (await leastRole(limits ?? [])),
    scopes: limits,
    agentId,
    expiresAt: expires === undefined ? undefined : parseTime('--expires', expires),
    workspace,
  };
  const key = await (await http()).createKey({ body: body as RouteRequest<'createKey'>['body'] });
  output.result(key, renderIssued(key));
};

interface ListOptions {
  readonly limit: string;
  readonly cursor?: string;
}

const list = async ({ output, http }: CommandContext, options: ListOptions): Promise<void> => {
  const page = await (await http()).listKeys({ query: options });
  output.result(page, [...page.keys.map(renderKey), ...nextPageLine(page.nextCursor)].join('\n'));
};

const revoke = async ({ output, http }: CommandContext, id: string): Promise<void> => {
  const key = await (await http()).revokeKey({ params: { id } });
  output.result(key, `${id}: revoked`);
};

const rotate = async (
  { output, http }: CommandContext,
  id: string,
  { overlap }: { readonly overlap: string },
): Promise<void> => {
  const body = { overlapSeconds: parseOverlap(overlap) };
  const key = await (await http()).rotateKey({ params: { id }, body });
  const until = key.previousValidUntil;
  const former =
    until === null
      ? 'The former secret is not valid any more.'
      : `The former secret is valid until ${until}.`;
  output.result(key, `${renderIssued(key)}\n${former}`);
};

const EXAMPLES = `
Examples:
  antiphon key create ci --role member --scopes sessions:write,sessions:read --expires 90d
  antiphon key list
  antiphon key rotate k7f3a2q5zr4mwx6b --overlap 1h
  antiphon key revoke k7f3a2q5zr4mwx6b`;

/** Adds `antiphon key create|list|revoke|rotate|rotate-master`. */
export const addKey = (program: Command, context: ContextOf): void => {
  const key = program
    .command('key')
    .description('create, list, revoke and rotate API keys of your workspace')
    .addHelpText('after', EXAMPLES);
  key
    .command('create <name>')
    .description('create a key and print its text, which is shown once')
    .option(
      '--role <role>',
      'viewer, member, operator or admin (default: member, or the least role that has the scopes)',
    )
    .option('--scopes <list>', 'permissions that limit the role, separated by commas')
    .option('--agent <id>', 'make it the credential of this agent, which never answers approvals')
    .option('--expires <when>', 'a duration such as 90d or 12h, or an ISO 8601 time (default: never)')
    .option('--workspace <id>', 'another workspace; for administrators of the workspace default')
    .addHelpText('after', EXAMPLES)
    .action((name: string, options: CreateOptions, command: Command) =>
      create(context(command), name, options),
    );
  key
    .command('list')
    .description('list the keys of your workspace, oldest first')
    .option('--limit <n>', 'keys per page, 1 to 200', '50')
    .option('--cursor <cursor>', 'start after this page')
    .action((options: ListOptions, command: Command) => list(context(command), options));
  key
    .command('revoke <id>')
    .description('revoke a key for good; its sockets close within a second')
    .action((id: string, _: unknown, command: Command) => revoke(context(command), id));
  key
    .command('rotate <id>')
    .description('give a key a new secret and print it, once')
    .option('--overlap <time>', 'how long the former secret stays valid, such as 10m', '0')
    .addHelpText('after', EXAMPLES)
    .action((id: string, options: { overlap: string }, command: Command) =>
      rotate(context(command), id, options),
    );
  key
    .command('rotate-master')
    .description('give stored credentials a new master key; repeat it after an interruption')
    .addHelpText('after', '\nExample:\n  antiphon key rotate-master')
    .action(async (_: unknown, command: Command) => {
      const { rotateMaster } = await import('./rotate-master.js');
      await rotateMaster(context(command));
    });
};
