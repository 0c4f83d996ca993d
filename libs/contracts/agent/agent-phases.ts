import { z } from 'zod';
import type { TurnPhase } from './agent-definition.js';

/** Phase of an agent's turns; null without an open turn. */
export type Phase = TurnPhase | null;

/** Phases that may follow each phase. `none` is an agent without an open turn. */
export const PHASE_TRANSITIONS: Readonly<Record<TurnPhase | 'none', ReadonlySet<TurnPhase | 'none'>>> = {
  none: new Set(['listening']),
  listening: new Set(['thinking', 'error', 'none']),
  thinking: new Set(['speaking', 'error', 'none']),
  speaking: new Set(['thinking', 'error', 'none']),
  error: new Set(['thinking', 'none']),
};

/** Returns the next phase. A transition that is not declared is refused: the phase stays. */
export const movePhase = (from: Phase, to: Phase): Phase =>
  PHASE_TRANSITIONS[from ?? 'none'].has(to ?? 'none') ? to : from;

/**
 * Speech of a completed model call: it had no text, the agent speaks until the next event, or it
 * spoke and waits for tools.
 */
export type Speech = 'none' | 'speaks' | 'spoke';

/**
 * Returns the speech of a completed model call. Only events with `firstTextAt` end the speech of an
 * answer with tool calls: the rows of older events stay equal to their log.
 */
export const speechOf = (data: object): Speech => {
  const { text, toolCalls, firstTextAt } = data as Readonly<Record<string, unknown>>;
  if (typeof text !== 'string' || text === '') return 'none';
  const hasCalls = Array.isArray(toolCalls) && toolCalls.length > 0;
  return hasCalls && firstTextAt !== undefined ? 'spoke' : 'speaks';
};

/** The part of a session event that the phase depends on. */
export interface PhaseFact {
  readonly type: string;
  readonly speech: Speech;
}

const PHASES_OF_SPEECH: Readonly<Record<Speech, readonly TurnPhase[]>> = {
  none: [],
  speaks: ['speaking'],
  spoke: ['speaking', 'thinking'],
};

/** Returns the phases of a completed call, in order. */
const phasesOfAnswer = (speech: Speech, from: Phase): readonly TurnPhase[] =>
  // A failure of another turn is newer than the start of this call, which was thinking.
  from === 'error' && speech !== 'none'
    ? ['thinking', ...PHASES_OF_SPEECH[speech]]
    : PHASES_OF_SPEECH[speech];

const phasesOf = ({ type, speech }: PhaseFact, from: Phase): readonly TurnPhase[] => {
  switch (type) {
    case 'TurnRequested':
      return ['listening'];
    case 'ModelCallStarted':
      return ['thinking'];
    case 'ModelCallCompleted':
      return phasesOfAnswer(speech, from);
    case 'ModelCallAborted':
    case 'ToolCallUnknown':
      return ['error'];
    default:
      return [];
  }
};

/** Types of session events that begin a turn or change its phase. */
export const PHASE_EVENTS = [
  'TurnRequested',
  'ModelCallStarted',
  'ModelCallCompleted',
  'ModelCallAborted',
  'ToolCallUnknown',
] as const;

/** Types of session events that open or close an approval. */
export const PHASE_APPROVALS = [
  'ApprovalRequested',
  'ApprovalGranted',
  'ApprovalDenied',
  'ApprovalExpired',
  'ApprovalVoided',
] as const;

/** Returns the phase after an event. `openTurns` is the number of open turns after it. */
export const phaseAfter = (phase: Phase, fact: PhaseFact, openTurns: number): Phase =>
  openTurns === 0 ? movePhase(phase, null) : phasesOf(fact, phase).reduce(movePhase, phase);

/**
 * Notification of the first text of an answer, which the log has only once the answer is complete.
 * It may be lost or come before its call is read. It is sent again each second while text follows.
 */
export const SpeechNotification = z.object({
  workspace: z.string(),
  agentId: z.string(),
  sessionId: z.uuid(),
  turnId: z.uuid(),
  /** Attempt of the model call that speaks. */
  attempt: z.int().positive(),
  at: z.iso.datetime().describe('Time of the first text.'),
});
export type SpeechNotification = z.infer<typeof SpeechNotification>;
export const speechSubject = (workspace: string): string => `hint.agent.speech.${workspace}`;
