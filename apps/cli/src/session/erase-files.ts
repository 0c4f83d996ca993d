import { invalid } from '@antiphon/kernel';
import { escapeText } from '../escape-text.js';
import type { CommandContext } from '../output.js';
import { type BrowseOptions, numberOf, workspaceOf } from './browse-files.js';

export interface EraseOptions extends BrowseOptions {
  readonly digest?: string;
  readonly reason?: string;
}

/** Erases the bytes of a path or of a digest for ever. */
export const eraseFile = async (
  { output, http }: CommandContext,
  path: string | undefined,
  options: EraseOptions,
): Promise<void> => {
  const { digest, reason, session } = options;
  if ((path === undefined) === (digest === undefined))
    throw invalid('CLI.USAGE', 'expected a path or --digest');
  const at = numberOf('at', options.at);
  const version = at === undefined ? undefined : Number(at);
  const reply = await (
    await http()
  ).eraseFiles({
    params: workspaceOf(options),
    body: { path, digest, version, reason, session },
  });
  const { erased, already, deleted, kept } = reply;
  const lines = [
    `erased ${erased.length} contents, ${already} were erased before`,
    ...deleted.map((one) => `deleted ${escapeText(one)}`),
    ...(kept.length === 0 ? [] : [`kept ${kept.length} other contents of this path outside the session`]),
  ];
  output.result(reply, lines.join('\n'));
};
