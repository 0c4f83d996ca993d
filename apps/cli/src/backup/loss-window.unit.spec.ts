import { describe, expect, it } from '@jest/globals';
import { lossWindow, renderLoss } from './loss-window.js';

const from = { epoch: 1, position: 100, at: '2026-11-22T10:00:00.000Z' };

describe('the loss window', () => {
  it('ends at the highest position of any witness', () => {
    const roots = { where: 'signed roots', position: 140, at: '2026-11-22T10:00:30.000Z' };
    const stream = { where: 'EVENTS', position: 160, at: null };
    const window = lossWindow(from, [roots, stream]);
    expect(window).toMatchObject({ to: stream, events: 60 });
    expect(renderLoss(window)).toBe(
      'lost: 60 events, after position 100 (2026-11-22T10:00:00.000Z) up to position 160 (time unknown), known from: EVENTS',
    );
  });

  it('reports that no later event is known, and does not claim that none is lost', () =>
    expect(renderLoss(lossWindow(from, [{ where: 'old roots', position: 90, at: null }]))).toBe(
      'lost: no known event after position 100 (2026-11-22T10:00:00.000Z)',
    ));
});
