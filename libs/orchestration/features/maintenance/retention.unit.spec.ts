import { describe, expect, it } from '@jest/globals';
import { sweepSchedules } from '../temporal/run-worker.js';
import { readRetention } from './archive-old-events.js';

const days = (eventsDays: number) => ({ retention: { eventsDays } });

describe('retention', () => {
  it('keeps all events without a folder', () => {
    expect(readRetention({}, days(30))).toBeNull();
    expect(readRetention({ ANTIPHON_ARCHIVE_FOLDER: '' }, days(30))).toBeNull();
  });

  it('keeps all events with 0 days', () =>
    expect(readRetention({ ANTIPHON_ARCHIVE_FOLDER: '/archives' }, days(0))).toBeNull());

  it('has the configured days and folder', () =>
    expect(readRetention({ ANTIPHON_ARCHIVE_FOLDER: '/archives' }, days(7))).toEqual({
      folder: '/archives',
      days: 7,
    }));

  it('rejects a relative folder', () =>
    expect(() => readRetention({ ANTIPHON_ARCHIVE_FOLDER: 'archives' }, days(7))).toThrow(
      expect.objectContaining({ code: 'SERVICE.BAD_ENVIRONMENT' }),
    ));

  it('has a schedule only with a folder', () => {
    const ids = (archives: boolean) => sweepSchedules('q', { archives }).map(({ scheduleId }) => scheduleId);
    expect(ids(true)).toEqual([...ids(false), 'q/archive-old-events']);
  });
});
