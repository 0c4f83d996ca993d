import type { SessionEvent, SessionEventOf, StreamedFrame } from '@antiphon/contracts/agent';
import {
  type CheckRun,
  type EventPlace,
  type Finding,
  open,
  type Parsed,
  violation,
} from '../audit-check.js';
import type { SessionCheck } from '../audit-check.js';

type Started = SessionEventOf<'ModelCallStarted'>['data'];
type Ended = SessionEventOf<'ModelCallCompleted' | 'ModelCallAborted'>['data'];

const sumLengths = (frames: readonly StreamedFrame[], kind: StreamedFrame['kind']): number =>
  frames.reduce((sum, frame) => (frame.kind === kind ? sum + frame.length : sum), 0);

/** Checks that frames cover the text exactly. Otherwise a resume would cut it differently. */
const checkFrames = ({ attempt, frames, text, thought }: Ended, at: EventPlace): Finding[] =>
  sumLengths(frames, 'text') === text.length && sumLengths(frames, 'thought') === thought.length
    ? []
    : [violation(at, `the frames of model attempt ${attempt} do not cover its text`)];

const isSameCall = (a: Started, b: Ended): boolean =>
  a.turnId === b.turnId &&
  a.step === b.step &&
  a.reservationId === b.reservationId &&
  a.provider === b.provider &&
  a.model === b.model;

interface Numbering {
  /** Newest number. A turn that ends without an attempt uses one for its frames. */
  attempt: number;
  turnId: string | null;
  /** Newest step of the running turn, and its newest try. */
  step: number;
  tryNumber: number;
  /** True once a try of that step has completed. */
  isStepCompleted: boolean;
}

class AttemptRun implements CheckRun<Parsed<SessionEvent>> {
  private numbering: Numbering = {
    attempt: 0,
    turnId: null,
    step: 0,
    tryNumber: 0,
    isStepCompleted: false,
  };
  private running: { readonly data: Started; readonly at: EventPlace } | undefined;
  private attempts = 0;

  see({ place: at, content: event }: Parsed<SessionEvent>): Finding[] {
    switch (event.type) {
      case 'ModelCallStarted':
        return this.startAttempt(event.data, at);
      case 'ModelCallCompleted':
      case 'ModelCallAborted':
        return this.endAttempt(event.data, at, event.type === 'ModelCallCompleted');
      case 'TurnCompleted':
      case 'TurnFailed':
      case 'TurnCancelled':
        return this.endTurn(event.data.turnId, at);
      default:
        return [];
    }
  }

  end(): Finding[] {
    return this.running
      ? [open(this.running.at, `model attempt ${this.running.data.attempt} has not ended`)]
      : [];
  }

  count(): number {
    return this.attempts;
  }

  private startAttempt(data: Started, at: EventPlace): Finding[] {
    this.attempts++;
    const findings = this.checkStep(data, at);
    if (this.running)
      findings.push(violation(at, `model attempt ${this.running.data.attempt} had not ended`));
    if (data.attempt !== this.numbering.attempt + 1)
      findings.push(violation(at, `model attempt ${data.attempt} follows ${this.numbering.attempt}`));
    const { attempt, turnId, step, tryNumber } = data;
    this.numbering = { attempt, turnId, step, tryNumber, isStepCompleted: false };
    this.running = { data, at };
    return findings;
  }

  private checkStep(data: Started, at: EventPlace): Finding[] {
    const { numbering } = this;
    const isNewTurn = numbering.turnId !== data.turnId;
    const isNextStep = isNewTurn || numbering.isStepCompleted;
    const step = isNewTurn ? 1 : numbering.step + (numbering.isStepCompleted ? 1 : 0);
    const tryNumber = isNextStep ? 1 : numbering.tryNumber + 1;
    if (data.step === step && data.tryNumber === tryNumber) return [];
    const actual = `model attempt ${data.attempt} is step ${data.step}, try ${data.tryNumber}`;
    return [violation(at, `${actual}; step ${step}, try ${tryNumber} was due`)];
  }

  private endAttempt(data: Ended, at: EventPlace, isCompleted: boolean): Finding[] {
    const started = this.running?.data;
    this.running = undefined;
    this.numbering.isStepCompleted = isCompleted;
    if (started?.attempt !== data.attempt)
      return [violation(at, `model attempt ${data.attempt} ended without a start, or twice`)];
    const findings = checkFrames(data, at);
    if (!isSameCall(started, data))
      findings.push(violation(at, `model attempt ${data.attempt} ended as another call than it started`));
    return findings;
  }

  private endTurn(turnId: string, at: EventPlace): Finding[] {
    if (this.numbering.turnId !== turnId) this.numbering.attempt++;
    this.numbering.turnId = null;
    return this.running
      ? [violation(at, `turn ${turnId} ended before model attempt ${this.running.data.attempt}`)]
      : [];
  }
}

/**
 * Checks that model attempts of a session are numbered 1, 2, 3 …, run one at a time and end once.
 * The offsets of frames depend on it.
 */
export const modelAttemptsAreNumbered: SessionCheck = {
  name: 'model-attempts-are-numbered',
  about:
    'model attempts are numbered without a gap, one at a time, each with one end whose frames cover its text',
  counts: 'model attempts',
  start: () => new AttemptRun(),
};
