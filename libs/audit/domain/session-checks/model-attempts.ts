import type { SessionEvent, SessionEventOf, StreamedFrame } from '@antiphon/contracts/agent';
import { open, violation } from '../audit-check.js';
import type { EventPlace, Finding, SessionCheck } from '../audit-check.js';

type Started = SessionEventOf<'ModelCallStarted'>['data'];
type Ended = SessionEventOf<'ModelCallCompleted' | 'ModelCallAborted'>['data'];

const lengthOf = (frames: readonly StreamedFrame[], kind: StreamedFrame['kind']): number =>
  frames.reduce((sum, frame) => (frame.kind === kind ? sum + frame.length : sum), 0);

/** Frames that do not cover the text exactly would be cut otherwise from the log than they were sent. */
const frameFindings = ({ attempt, frames, text, thought }: Ended, at: EventPlace): Finding[] =>
  lengthOf(frames, 'text') === text.length && lengthOf(frames, 'thought') === thought.length
    ? []
    : [violation(at, `the frames of model attempt ${attempt} do not cover its text`)];

const sameCall = (a: Started, b: Ended): boolean =>
  a.turnId === b.turnId &&
  a.step === b.step &&
  a.reservationId === b.reservationId &&
  a.provider === b.provider &&
  a.model === b.model;

interface Numbering {
  /** The number in use, and whose it is: a turn that ends without an attempt takes one of its own (frames). */
  attempt: number;
  turnId: string | null;
  /** Of the turn at work: its newest step and try, and whether that step was answered. */
  step: number;
  tryNumber: number;
  answered: boolean;
}

const stepFindings = (data: Started, numbering: Numbering, at: EventPlace): Finding[] => {
  const isNewTurn = numbering.turnId !== data.turnId;
  const isNextStep = isNewTurn || numbering.answered;
  const step = isNewTurn ? 1 : numbering.step + (numbering.answered ? 1 : 0);
  const tryNumber = isNextStep ? 1 : numbering.tryNumber + 1;
  return data.step === step && data.tryNumber === tryNumber
    ? []
    : [
        violation(
          at,
          `model attempt ${data.attempt} is step ${data.step}, try ${data.tryNumber}; step ${step}, try ${tryNumber} was due`,
        ),
      ];
};

/** Model attempts of a session are numbered 1, 2, 3 …, one at a time, each ended once: frames take their offsets from it. */
export const modelAttemptsAreNumbered: SessionCheck = {
  name: 'model-attempts-are-numbered',
  about:
    'model attempts are numbered without a gap, one at a time, each with one end whose frames cover its text',
  counts: 'model attempts',
  start: () => {
    const numbering: Numbering = { attempt: 0, turnId: null, step: 0, tryNumber: 0, answered: false };
    let running: { data: Started; at: EventPlace } | undefined;
    let attempts = 0;

    const begin = (data: Started, at: EventPlace): Finding[] => {
      attempts++;
      const findings = stepFindings(data, numbering, at);
      if (running) findings.push(violation(at, `model attempt ${running.data.attempt} had not ended`));
      if (data.attempt !== numbering.attempt + 1)
        findings.push(violation(at, `model attempt ${data.attempt} follows ${numbering.attempt}`));
      const { attempt, turnId, step, tryNumber } = data;
      Object.assign(numbering, { attempt, turnId, step, tryNumber, answered: false });
      running = { data, at };
      return findings;
    };
    const end = (data: Ended, at: EventPlace, answered: boolean): Finding[] => {
      const begun = running?.data;
      running = undefined;
      numbering.answered = answered;
      if (begun?.attempt !== data.attempt)
        return [violation(at, `model attempt ${data.attempt} ended without having begun, or twice`)];
      const findings = frameFindings(data, at);
      return sameCall(begun, data)
        ? findings
        : [...findings, violation(at, `model attempt ${data.attempt} ended as another call than it began`)];
    };
    const endTurn = (turnId: string, at: EventPlace): Finding[] => {
      if (numbering.turnId !== turnId) numbering.attempt++;
      numbering.turnId = null;
      return running
        ? [violation(at, `turn ${turnId} ended before model attempt ${running.data.attempt}`)]
        : [];
    };
    const see = (at: EventPlace, event: SessionEvent): Finding[] => {
      switch (event.type) {
        case 'ModelCallStarted':
          return begin(event.data, at);
        case 'ModelCallCompleted':
        case 'ModelCallAborted':
          return end(event.data, at, event.type === 'ModelCallCompleted');
        case 'TurnCompleted':
        case 'TurnFailed':
        case 'TurnCancelled':
          return endTurn(event.data.turnId, at);
        default:
          return [];
      }
    };
    return {
      see: ({ place, content }) => see(place, content),
      end: () => (running ? [open(running.at, `model attempt ${running.data.attempt} has not ended`)] : []),
      count: () => attempts,
    };
  },
};
