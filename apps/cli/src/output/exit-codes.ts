import { configProblems } from '@antiphon/config';
import { isAppError, type ErrorKind } from '@antiphon/kernel';

/** Contract §5. */
export const EXIT = { done: 0, failed: 1, usage: 2, unreachable: 3, refused: 4 } as const;

const BY_KIND: Partial<Record<ErrorKind, number>> = {
  unauthenticated: EXIT.refused,
  forbidden: EXIT.refused,
  exhausted: EXIT.refused,
};

/** The exit code that tells a script what kind of failure it was. */
export const exitCodeOf = (error: unknown): number => {
  if (configProblems(error).length > 0) return EXIT.usage;
  if (!isAppError(error)) return EXIT.failed;
  if (error.code === 'CLI.UNREACHABLE') return EXIT.unreachable;
  if (error.code === 'CLI.USAGE' || error.code.startsWith('CONFIG.')) return EXIT.usage;
  return BY_KIND[error.kind] ?? EXIT.failed;
};
