import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import type { NativeCall } from '@antiphon/conversation-features';

const MAX_COMMANDS = 20;
const PLAIN = /^[\w./-]+$/;

const quote = (path: string): string =>
  PLAIN.test(path) && !path.startsWith('-') ? path : `'${path.replaceAll("'", "'\\''")}'`;

/** Returns the commands that bring removed files back from the bin, for the first files. */
export const restoreCommands = (
  { workspace, sessionId }: Pick<NativeCall, 'workspace' | 'sessionId'>,
  paths: readonly string[],
  isFork: boolean,
): string[] => {
  const options = [
    ...(workspace === DEFAULT_WORKSPACE ? [] : ['--workspace', workspace]),
    ...(isFork ? ['--session', sessionId] : []),
  ];
  return paths
    .slice(0, MAX_COMMANDS)
    .map((path) => ['antiphon files restore', quote(path), ...options].join(' '));
};
