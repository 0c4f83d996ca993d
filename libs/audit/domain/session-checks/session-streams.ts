import { violation } from '../audit-check.js';
import type { SessionCheck } from '../audit-check.js';

/** A session's event stream begins with its one SessionStarted, which names the session that the stream is called by. */
export const sessionsBeginOnce: SessionCheck = {
  name: 'sessions-begin-once',
  about: 'every session’s event stream begins with its one SessionStarted',
  counts: 'sessions',
  start: () => {
    let begun = false;
    let sessions = 0;
    return {
      see: ({ place, content }) => {
        if (content.type !== 'SessionStarted') {
          const missing = !begun;
          begun = true; // said once
          return missing ? [violation(place, `${content.type} came before SessionStarted`)] : [];
        }
        const twice = begun;
        begun = true;
        sessions++;
        if (twice) return [violation(place, 'the session began twice')];
        return place.streamId === `session-${content.data.sessionId}`
          ? []
          : [violation(place, `the session says that it is ${content.data.sessionId}`)];
      },
      end: () => [],
      count: () => sessions,
    };
  },
};

/** What one driver appends is never mixed with what its successor does: epochs only grow along a session. */
export const leaseEpochsGrow: SessionCheck = {
  name: 'lease-epochs-grow',
  about: 'no driver appended to a session after its successor had',
  counts: 'events under a lease',
  start: () => {
    let highest = 0;
    let events = 0;
    return {
      see: ({ place, epoch }) => {
        if (epoch === undefined) return [];
        events++;
        if (epoch < highest) return [violation(place, `epoch ${epoch} appended after epoch ${highest}`)];
        highest = epoch;
        return [];
      },
      end: () => [],
      count: () => events,
    };
  },
};
