import type { AgentConfig } from '@antiphon/config';
import type {
  OpenCall,
  SessionCommand,
  Step,
  ToolDeferral,
  ToolOutcome,
} from '@antiphon/conversation-domain';
import type { BlobAppend, StreamAppend } from '@antiphon/event-store';
import type { TurnFailpoint } from '@antiphon/kernel';
import type { SessionActor } from '../sessions/session-actor.js';
import type { PreparedCall, TurnContext } from './prepare-call.js';
import { createToken } from '@antiphon/service-host';

/** A point at which a test may kill or stop the process. Outside of tests it does nothing. */
export type Failpoint = (name: TurnFailpoint, sessionId: string) => Promise<void>;

export const FAILPOINT = createToken<Failpoint>('FAILPOINT');

/** The step of a turn with this kind. */
export type StepOf<Kind extends Step['kind']> = Extract<Step, { kind: Kind }>;

export interface RecordOptions {
  /** Appends of the same transaction. Left out if the command yields no event. */
  readonly also?: readonly StreamAppend[];
  /** As `also`, at positions before those of the session's events. */
  readonly before?: readonly StreamAppend[];
  /** Bytes of files that the appends cite. */
  readonly blobs?: readonly BlobAppend[];
  /** Called after the commit of an event that the command yielded. */
  readonly onRecorded?: () => void;
  /** Lets a model call begin although the agent has unread messages. */
  readonly ignoresInbox?: boolean;
}

/** One step of a turn that is being driven. */
export interface StepContext {
  readonly actor: SessionActor;
  /** Null when the session's agent is no longer configured: no call is started for it then. */
  readonly agent: AgentConfig | null;
  /** Aborted with `Stopped` as its reason. */
  readonly signal: AbortSignal;
  /** Returns the context of the open turn. It is requested once per turn. */
  readonly context: () => Promise<TurnContext>;
  /** Returns the call that was prepared while its start was being committed; null when none was. */
  readonly takePrefetched: (call: OpenCall) => Promise<PreparedCall | null>;
  /** Returns the result of a tool call that ran while its request was being committed; else null. */
  readonly takeEarlyTool: (callId: string) => Promise<ToolOutcome | ToolDeferral | null>;
  /**
   * Checks that this process still holds the session, before a call leaves it. Throws `Stopped`.
   */
  readonly confirmLease: () => Promise<void>;
  /** Stops at a failpoint of this session. */
  readonly failpoint: (name: TurnFailpoint) => Promise<void>;
  /** Records a command and its follow-ups. Retries while the log is unavailable. */
  readonly record: (command: SessionCommand | null, options?: RecordOptions) => Promise<void>;
}
