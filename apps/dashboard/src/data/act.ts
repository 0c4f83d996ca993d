import { useCallback, useState } from 'react';
import { usePosition } from './router.js';
import { useIdentity } from './identity.js';
import { toProblem, type Problem } from './use-read.js';

export interface Act {
  /** Runs the action once. A second call while it runs does nothing. */
  readonly run: (work: () => Promise<unknown>) => void;
  readonly isBusy: boolean;
  readonly problem: Problem | null;
}

/** Runs actions of a page and keeps the reason of a failed one. */
export const useAct = (): Act => {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const run = useCallback(
    (work: () => Promise<unknown>) => {
      if (isBusy) return;
      setBusy(true);
      setProblem(null);
      work().then(
        () => setBusy(false),
        (error: unknown) => {
          setProblem(toProblem(error));
          setBusy(false);
        },
      );
    },
    [isBusy],
  );
  return { run, isBusy, problem };
};

/** Returns why a control that acts is off, or null if the caller may use it. */
export const useRefusal = (permission: string): string | null => {
  const position = usePosition();
  const { permissions, role } = useIdentity();
  if (position !== null) return 'Not in the past: go back to live first';
  if (permissions !== null && !permissions.includes(permission))
    return `Your role ${role} lacks ${permission}`;
  return null;
};
