import type { RouteReply } from '@antiphon/client';

type RootState = Pick<RouteReply<'listRoots'>, 'uncovered' | 'nextAt' | 'everySeconds'>;

const GRACE_MS = 60_000;

/** A root is late a minute after half of its interval has passed without it. */
export const isRootLate = ({ uncovered, nextAt, everySeconds }: RootState, now: number): boolean =>
  (uncovered ?? 0) > 0 && nextAt !== null && new Date(nextAt).getTime() + everySeconds * 500 + GRACE_MS < now;
