import { describe, expect, it } from '@jest/globals';
import type { LogEvent } from '@antiphon/client';
import type { Turn } from './transcript.js';
import { begunTurns, cancelledTurns, queuedTurns, runningTurn } from './turn-queue.js';

const turn = (turnId: string, more: Partial<Turn> = {}): Turn =>
  ({
    ...{ turnId, status: 'queued', endedAt: null, model: null, items: [], usage: { calls: 0 } },
    ...more,
  }) as unknown as Turn;
const ended = (turnId: string, more: Partial<Turn> = {}): Turn =>
  turn(turnId, { endedAt: '2026-11-27T10:00:00.000Z', status: 'completed', model: 'm', ...more });
const idsOf = (turns: readonly Turn[]): string[] => turns.map(({ turnId }) => turnId);

describe('the queue of a chat', () => {
  const turns = [ended('a'), turn('b', { status: 'running', model: 'm' }), turn('c'), turn('d')];

  it('has the turns after the running one, without cancelled ones', () => {
    const events = [{ type: 'TurnCancelRequested', data: { turnId: 'c' } }] as unknown as LogEvent[];
    expect(runningTurn(turns)?.turnId).toBe('b');
    expect(idsOf(queuedTurns(turns, new Set()))).toEqual(['c', 'd']);
    expect(idsOf(queuedTurns(turns, cancelledTurns(events)))).toEqual(['d']);
    expect(runningTurn([ended('a')])).toBeNull();
  });

  it('leaves turns that never began out of the thread, and keeps the one that was stopped', () => {
    const stopped = ended('e', { status: 'cancelled' });
    const removed = ended('f', { status: 'cancelled', model: null });
    expect(idsOf(begunTurns([...turns, stopped, removed], new Set()))).toEqual(['a', 'b', 'e']);
    // The next turn of the queue was removed, and its end is not recorded yet.
    expect(idsOf(begunTurns([ended('a'), turn('c'), turn('d')], new Set(['c'])))).toEqual(['a']);
  });
});
