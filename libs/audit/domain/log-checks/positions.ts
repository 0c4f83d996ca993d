import { violation } from '../audit-check.js';
import type { AuditCheck, EventPlace } from '../audit-check.js';

/** Positions count up by one, from the one after `base`, in the order of commits. */
export const positionsAreGapless = (base: number): AuditCheck<EventPlace> => ({
  name: 'positions-are-gapless',
  about: 'positions count up by one, so no reader can have skipped an event',
  counts: 'events',
  start: () => {
    let last = base;
    let events = 0;
    return {
      see: (place) => {
        const expected = last + 1;
        last = place.position;
        events++;
        return place.position === expected
          ? []
          : [violation(place, `position ${place.position} follows ${expected - 1}`)];
      },
      end: () => [],
      count: () => events,
    };
  },
});

/** Within each event stream (given one after another) versions are 1, 2, 3 …, and positions grow with them. */
export const versionsAreContiguous: AuditCheck<EventPlace> = {
  name: 'versions-are-contiguous',
  about: 'within each event stream versions are 1, 2, 3 …, and positions grow with them',
  counts: 'events',
  start: () => {
    let version = 0;
    let position = 0;
    let events = 0;
    return {
      see: (place) => {
        const expected = version + 1;
        const before = position;
        version = place.streamVersion;
        position = place.position;
        events++;
        if (version !== expected) return [violation(place, `version ${version} follows ${expected - 1}`)];
        return position > before
          ? []
          : [violation(place, `position ${position} does not follow ${before} of the version before`)];
      },
      end: () => [],
      count: () => events,
    };
  },
};
