import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { TURN_PHASES } from './agent-definition.js';
import { foldActivity, initialActivity, speak, stateOf } from './agent-activity.js';
import { movePhase, phaseAfter, PHASE_TRANSITIONS, speechOf } from './agent-phases.js';
import type { Phase, Speech } from './agent-phases.js';
import { SessionEvent } from './events.js';
import { TURN_ENDS } from './turn-ends.js';

const PHASES: readonly Phase[] = [null, ...TURN_PHASES];
const TYPES = SessionEvent.options.map(({ shape }) => shape.type.value);
const SPEECHES: readonly Speech[] = ['none', 'speaks', 'spoke'];

/** Phase after an event in each phase: none, listening, thinking, speaking, error. */
type Row = readonly [Phase, Phase, Phase, Phase, Phase];
const UNCHANGED: Row = [null, 'listening', 'thinking', 'speaking', 'error'];
const STARTED: Row = [null, 'thinking', 'thinking', 'thinking', 'thinking'];
const FAILED: Row = [null, 'error', 'error', 'error', 'error'];
const EXPECTED: Readonly<Record<string, Row>> = {
  TurnRequested: ['listening', 'listening', 'thinking', 'speaking', 'error'],
  ModelCallStarted: STARTED,
  'ModelCallCompleted speaks': [null, 'listening', 'speaking', 'speaking', 'speaking'],
  'ModelCallCompleted spoke': STARTED,
  ModelCallAborted: FAILED,
  ToolCallUnknown: FAILED,
};

describe('the phase of a turn', () => {
  it.each(TYPES)('has one declared successor after %s in every phase', (type) => {
    for (const speech of SPEECHES) {
      const row = EXPECTED[type] ?? EXPECTED[`${type} ${speech}`] ?? UNCHANGED;
      expect(PHASES.map((phase) => phaseAfter(phase, { type, speech }, 1))).toEqual(row);
    }
  });

  it.each(TURN_ENDS)('is none after %s of the last open turn', (type) => {
    for (const phase of PHASES) expect(phaseAfter(phase, { type, speech: 'none' }, 0)).toBeNull();
  });

  it('stays as it is where the table declares no transition', () => {
    const declared: string[] = [];
    for (const from of PHASES)
      for (const to of PHASES) {
        const isDeclared = PHASE_TRANSITIONS[from ?? 'none'].has(to ?? 'none');
        expect(movePhase(from, to)).toBe(isDeclared ? to : from);
        if (isDeclared && to === 'speaking') declared.push(String(from));
      }
    expect(declared).toEqual(['thinking']);
  });

  it('is speaking until the next event after the last answer, and thinking after one with tools', () => {
    const spoken = { text: 'I look.', firstTextAt: '2026-11-26T09:00:00.000Z' };
    const toolCalls = [{ callId: 'c' }];
    expect(speechOf({ ...spoken, toolCalls: [] })).toBe('speaks');
    expect(speechOf({ ...spoken, toolCalls })).toBe('spoke');
    expect(speechOf({ text: '', toolCalls })).toBe('none');
    // Rows of events without the time of their text were folded so.
    expect(speechOf({ text: 'I look.', toolCalls })).toBe('speaks');
  });

  it('enters speaking only from thinking, in any history of several turns with live texts', () => {
    const step = fc.record({
      type: fc.constantFrom(...TYPES, 'live text'),
      turn: fc.nat({ max: 2 }),
      speech: fc.constantFrom(...SPEECHES),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let activity = initialActivity;
        for (const { type, turn, speech } of steps) {
          const before = activity.phase;
          activity =
            type === 'live text'
              ? speak(activity, `${turn}`)
              : foldActivity(activity, { type, turnId: `${turn}`, speech });
          const { phase } = activity;
          // A completed call was thinking before another turn failed.
          const isAfterFailure = type === 'ModelCallCompleted' && before === 'error';
          if (phase === 'speaking' && before !== 'speaking' && !isAfterFailure)
            expect(before).toBe('thinking');
          if (phase === 'listening' && before !== 'listening') expect(before).toBeNull();
          if (activity.turns.size === 0) expect(stateOf(activity)).toEqual({ state: 'idle', phase: null });
        }
      }),
      { numRuns: 5_000 },
    );
  });
});

describe('an agent with an open approval', () => {
  const fact = (type: string, turnId: string, approvalId?: string) => ({
    ...{ type, turnId, speech: 'none' as const },
    ...(approvalId && { approvalId }),
  });
  const fold = (...facts: Parameters<typeof foldActivity>[1][]) =>
    stateOf(facts.reduce(foldActivity, initialActivity));
  const asked = [
    fact('TurnRequested', 'a'),
    fact('ModelCallStarted', 'a'),
    fact('ApprovalRequested', 'a', 'x'),
  ];

  it('is waiting until each approval of its open turns is closed', () => {
    expect(fold(...asked)).toEqual({ state: 'working', phase: 'waiting' });
    const second = fact('ApprovalRequested', 'a', 'y');
    expect(fold(...asked, second, fact('ApprovalGranted', 'a', 'x')).phase).toBe('waiting');
    for (const end of ['ApprovalGranted', 'ApprovalDenied', 'ApprovalExpired', 'ApprovalVoided'])
      expect(fold(...asked, fact(end, 'a', 'x')).phase).toBe('thinking');
    expect(fold(...asked, fact('ApprovalEscalated', 'a', 'x')).phase).toBe('waiting');
  });

  it('waits no longer once the turn has ended, while another turn is open', () => {
    const other = fact('TurnRequested', 'b');
    expect(fold(...asked, other, fact('TurnCancelled', 'a')).phase).toBe('thinking');
    expect(fold(...asked, fact('TurnFailed', 'a'))).toEqual({ state: 'idle', phase: null });
  });
});
