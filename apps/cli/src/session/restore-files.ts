import { randomUUID } from 'node:crypto';
import type { RouteReply } from '@antiphon/client';
import { invalid } from '@antiphon/kernel';
import { escapeText } from '../escape-text.js';
import type { CommandContext } from '../output.js';

type RewindReply = RouteReply<'rewindFiles'>;

export interface RestoreFilesOptions {
  readonly session: string;
  readonly at: string;
  readonly dryRun?: boolean;
  readonly key?: string;
}

const render = ({ version, files, conflicts }: RewindReply): string =>
  [
    ...files.map(({ path, change }) => `${change} ${escapeText(path)}`),
    ...conflicts.map(({ path, reason, detail }) =>
      reason === 'newer_change'
        ? `kept ${escapeText(path)}: a newer change of ${escapeText(detail)}`
        : `kept ${escapeText(path)}: ${escapeText(detail)}`,
    ),
    `version ${version}, ${files.length} files restored or deleted, ${conflicts.length} conflicts`,
  ].join('\n');

/** Takes back a session's changes of files after one of its events, and prints them. */
export const restoreFiles = async (
  { output, http }: CommandContext,
  { session, at, dryRun = false, key }: RestoreFilesOptions,
): Promise<void> => {
  if (!/^\d{1,9}$/.test(at)) throw invalid('CLI.USAGE', `--at ${at}: expected a number from 0`);
  const reply = await (
    await http()
  ).rewindFiles({
    params: { id: session },
    body: { at: Number(at), dryRun },
    idempotencyKey: key ?? randomUUID(),
  });
  output.result(reply, render(reply));
};
