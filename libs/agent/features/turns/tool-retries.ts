/** A tool call that is to be tried again, and the agent that it is for. */
export interface ToolRetryRef {
  readonly workspace: string;
  readonly sessionId: string;
  readonly callId: string;
  readonly agentId: string;
}

/** Sees to it that calls that were put off are tried again when they are due. */
export interface ToolRetries {
  /** Safe to repeat: a call that is seen to already is left alone. Does not throw; what fails is tried again. */
  begin(call: ToolRetryRef): void;
}
