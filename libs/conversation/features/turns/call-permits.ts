import type { Ids } from '@antiphon/kernel';

/** Permission of one attempt of a tool call to have its first effect. */
export interface CallPermit {
  readonly attemptId: string;
  /** Withdraws the permission. Returns whether the attempt has used it: it may have acted then. */
  withdraw(): boolean;
}

/**
 * Permissions of the attempts that this process has in flight. The sandbox asks for one before the
 * first effect of a call. So this process knows of an attempt without a reply whether its tool can
 * have acted. After a withdrawal it cannot any more.
 */
export class CallPermits {
  private readonly attempts = new Map<string, { isUsed: boolean }>();

  constructor(private readonly ids: Ids) {}

  open(): CallPermit {
    const attemptId = this.ids.next();
    const attempt = { isUsed: false };
    this.attempts.set(attemptId, attempt);
    const withdraw = (): boolean => {
      this.attempts.delete(attemptId);
      return attempt.isUsed;
    };
    return { attemptId, withdraw };
  }

  /** Uses the permission of an attempt, again if its reply was lost. Returns false without one. */
  use(attemptId: string): boolean {
    const attempt = this.attempts.get(attemptId);
    if (attempt) attempt.isUsed = true;
    return attempt !== undefined;
  }
}
