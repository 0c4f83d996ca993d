import type { OpenTurn, SessionCommand, ToolOutcome, TurnToolCall } from '@antiphon/conversation-domain';
import type { BlobAppend, Fence, StreamAppend } from '@antiphon/event-store';
import type { SessionActor } from '../sessions/session-actor.js';
import { createToken } from '@antiphon/service-host';

/** A native tool call: the agent that makes it, and its turn. */
export interface NativeCall {
  readonly workspace: string;
  readonly sessionId: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly turn: OpenTurn;
  readonly callId: string;
  /** Aborted with `Stopped` as its reason. */
  readonly signal: AbortSignal;
  /** Timeout of the call, ms; null for none. */
  readonly timeoutMs: number | null;
  /**
   * Records the result of the call together with the facts of its effect, in one append. Returns
   * false if the call has an outcome already: nothing was appended then.
   */
  readonly recordWith?: (content: string, effect: CallEffect) => Promise<boolean>;
  /** Returns the fence of an effect that is not recorded with the result. Throws `Stopped`. */
  readonly fence: () => Fence;
}

/** The step of a turn that makes a native tool call. */
export interface ToolStep {
  readonly actor: SessionActor;
  /** Aborted with `Stopped` as its reason. */
  readonly signal: AbortSignal;
  /** Records a command, with the facts of its effect in the same append. */
  readonly record: (
    command: SessionCommand,
    options: {
      readonly before: readonly StreamAppend[];
      readonly blobs: readonly BlobAppend[];
      /** Called after the commit of an event that the command yielded. */
      readonly onRecorded: () => void;
    },
  ) => Promise<void>;
}

/** Facts of another stream that a call causes, and the bytes that they cite. */
export interface CallEffect {
  readonly stream: StreamAppend;
  readonly blobs: readonly BlobAppend[];
}

/** Tools that run in this process, as turns call them. */
export interface NativeToolPort {
  /** Describes what a call would change, for the approval of it; undefined for no file. */
  preview(step: Pick<ToolStep, 'actor' | 'signal'>, call: TurnToolCall): Promise<string | undefined>;
  /**
   * Runs a call and returns its outcome. One that was recorded together with the facts of its
   * effect is passed to `onRecorded`. Throws `Stopped` if this process no longer drives the call.
   */
  run(step: ToolStep, call: TurnToolCall, onRecorded?: (outcome: ToolOutcome) => void): Promise<ToolOutcome>;
  /** Cancels the turn of another agent that a lost call began. A failure is logged. */
  abandon(step: Pick<ToolStep, 'actor'>, call: TurnToolCall): Promise<void>;
}

export const NATIVE_TOOLS = createToken<NativeToolPort>('NATIVE_TOOLS');
