import { describe, expect, it } from '@jest/globals';
import { sweepSchedules } from '../runs/run-worker.js';
import { readRetention } from './archive-old-events.js';

const days = (eventsDays: number) => ({ retention: { eventsDays } });

describe('retention', () => {
  it('keeps everything until somebody says where it may go', () => {
    expect(readRetention({}, days(30))).toBeNull();
    expect(readRetention({ ANTIPHON_ARCHIVE_FOLDER: '' }, days(30))).toBeNull();
  });

  it('keeps everything with 0 days', () =>
    expect(readRetention({ ANTIPHON_ARCHIVE_FOLDER: '/archives' }, days(0))).toBeNull());

  it('is of so many days, into that folder', () =>
    expect(readRetention({ ANTIPHON_ARCHIVE_FOLDER: '/archives' }, days(7))).toEqual({
      folder: '/archives',
      days: 7,
    }));

  it('refuses a folder that is another one for each process', () =>
    expect(() => readRetention({ ANTIPHON_ARCHIVE_FOLDER: 'archives' }, days(7))).toThrow(
      expect.objectContaining({ code: 'SERVICE.BAD_ENVIRONMENT' }),
    ));

  it('has a schedule only where anything leaves', () => {
    const ids = (archives: boolean) => sweepSchedules('q', { archives }).map(({ scheduleId }) => scheduleId);
    expect(ids(true)).toEqual([...ids(false), 'q/archive-old-events']);
  });
});
