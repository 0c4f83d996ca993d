import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { FileChangeView, FileEntryView } from '@antiphon/contracts/agent';
import type { RouteReply } from '@antiphon/client';
import { invalid } from '@antiphon/kernel';
import { LONG_TIMEOUT_MS, nextPageLine } from '../connection/gateway-http.js';
import { escapeText } from '../escape-text.js';
import type { CommandContext } from '../output.js';

/** Options of the commands that read files. */
export interface BrowseOptions {
  readonly workspace?: string;
  readonly session?: string;
  readonly at?: string;
  readonly recursive?: boolean;
  readonly bin?: boolean;
  readonly limit?: string;
  readonly from?: string;
  readonly to?: string;
  readonly out?: string;
}

type Page = RouteReply<'listFiles'>;

/** Returns the parameters of the routes of a workspace. */
export const workspaceOf = ({ workspace = 'default' }: BrowseOptions) => ({ id: workspace });

/** Throws `CLI.USAGE` unless an option is a number. */
export const numberOf = (name: string, value: string | undefined): string | undefined => {
  if (value !== undefined && !/^\d{1,12}$/.test(value))
    throw invalid('CLI.USAGE', `--${name} ${value}: expected a number from 0`);
  return value;
};

const listPage = async (
  { http }: CommandContext,
  folder: string,
  options: BrowseOptions,
  cursor?: string,
): Promise<Page> => {
  const { session, recursive, bin, at } = options;
  const flags = {
    recursive: recursive ? ('true' as const) : undefined,
    bin: bin ? ('true' as const) : undefined,
  };
  const query = { path: folder, session, at: numberOf('at', at), ...flags, limit: 1_000, cursor };
  return (await http()).listFiles({ params: workspaceOf(options), query });
};

/** Lists every page of a folder at one version. */
export const listAll = async (
  context: CommandContext,
  folder: string,
  options: BrowseOptions,
): Promise<Page> => {
  const first = await listPage(context, folder, options);
  const entries = [...first.entries];
  const at = options.bin ? options.at : (options.at ?? String(first.version));
  for (let cursor = first.nextCursor; cursor !== null;) {
    const page = await listPage(context, folder, { ...options, ...(at === undefined ? {} : { at }) }, cursor);
    entries.push(...page.entries);
    cursor = page.nextCursor;
  }
  return { ...first, entries, nextCursor: null };
};

const renderEntry = ({ path, kind, size, files, version, is_virtual: isVirtual }: FileEntryView): string => {
  const name = escapeText(path);
  if (kind === 'folder') return `${name}/  ${files ?? 0} files, ${size} bytes`;
  return `${name}  ${size} bytes, version ${version}${isVirtual ? ', virtual' : ''}`;
};

/** Prints the entries of a folder. */
export const listFolder = async (
  context: CommandContext,
  folder: string,
  options: BrowseOptions,
): Promise<void> => {
  const page = await listAll(context, folder, options);
  const lines = [...page.entries.map(renderEntry), `version ${page.version}, ${page.total} entries`];
  context.output.result(page, lines.join('\n'));
};

/** Reads a file at a version. */
export const readBytes = async (
  { http }: CommandContext,
  path: string,
  options: BrowseOptions,
  at: string | undefined,
): Promise<Buffer> => {
  const { readFile: read } = await http();
  const request = { params: { ...workspaceOf(options), path }, query: { session: options.session, at } };
  return Buffer.from(await read({ ...request, bytes: true, timeoutMs: LONG_TIMEOUT_MS }));
};

/** Options of `antiphon files put`. */
export interface PutOptions {
  readonly workspace?: string;
  readonly session?: string;
  readonly expect?: string;
}

/** Writes a file of this machine to a path of the workspace. */
export const putFile = async (
  { output, http }: CommandContext,
  source: string,
  path: string,
  options: PutOptions,
): Promise<void> => {
  const { session, expect } = options;
  const bytes = await readFile(source).catch((cause: unknown) => {
    throw invalid('CLI.USAGE', `cannot read ${source}`, { cause });
  });
  const reply = await (
    await http()
  ).writeFile({
    params: { ...workspaceOf(options), path },
    query: { session, expect },
    upload: new Uint8Array(bytes),
    timeoutMs: LONG_TIMEOUT_MS,
  });
  const [file] = reply.files;
  const what = file ? `${file.size} bytes, ${file.digest ?? ''}` : 'unchanged';
  output.result(reply, `${escapeText(path)}: ${what}, version ${reply.version}`);
};

/** Prints a file, byte by byte unless the output is JSON. */
export const printFile = async (
  context: CommandContext,
  path: string,
  options: BrowseOptions,
): Promise<void> => {
  const bytes = await readBytes(context, path, options, numberOf('at', options.at));
  const text = bytes.toString('utf8');
  if (context.output.json) context.output.result({ path, text }, text);
  else if (process.stdout.isTTY) context.output.piece(escapeLines(text));
  // A file or a pipe gets the same bytes.
  else process.stdout.write(bytes);
};

const escapeLines = (text: string): string => text.split('\n').map(escapeText).join('\n');

const renderChange = ({ version, type, path, to, cause, at }: FileChangeView): string => {
  const where =
    cause.turnId === undefined ? '' : ` in session ${cause.sessionId ?? ''}, turn ${cause.turnId}`;
  const target = to === null ? '' : ` to ${escapeText(to)}`;
  return `${version}  ${at}  ${type} ${escapeText(path)}${target} by ${escapeText(cause.actor)}${where}`;
};

/** Prints the changes of a path, newest first, with their causes. */
export const showHistory = async (
  { output, http }: CommandContext,
  path: string,
  options: BrowseOptions,
): Promise<void> => {
  const query = { path, session: options.session, limit: numberOf('limit', options.limit) };
  const page = await (await http()).readFileHistory({ params: workspaceOf(options), query });
  output.result(page, [...page.changes.map(renderChange), ...nextPageLine(page.nextCursor)].join('\n'));
};

/** Restores a file from the bin, or from a version of the tree. */
export const restoreFile = async (
  { output, http }: CommandContext,
  path: string,
  options: BrowseOptions & { readonly from?: string; readonly key?: string },
): Promise<void> => {
  const version = numberOf('from', options.from);
  const change = { path, ...(version === undefined ? {} : { version: Number(version) }) };
  const reply = await (
    await http()
  ).changeFiles({
    params: workspaceOf(options),
    body: { changes: [{ op: 'restore', ...change }] },
    idempotencyKey: options.key ?? randomUUID(),
  });
  output.result(reply, `restored ${escapeText(path)}, version ${reply.version}`);
};
