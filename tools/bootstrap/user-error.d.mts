export declare class UserError extends Error {
  constructor(message: string, options?: { exitCode?: number; cause?: unknown });
  readonly exitCode: number;
}
export declare const explainSystemError: (error: unknown, subject: string) => string | null;
export declare const toUserError: (error: unknown, subject: string, hint?: string) => unknown;
