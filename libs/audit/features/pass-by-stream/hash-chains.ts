import { violation } from '@antiphon/audit-domain';
import type { AuditCheck } from '@antiphon/audit-domain';
import { verifyChain } from '@antiphon/event-store';
import type { ChainStart, RecordedEvent } from '@antiphon/event-store';
import { placeOf } from '../read-log/event-rows.js';

/** Recomputes the hash of every event of a stream from its content and the hash before it. */
export const hashChainsAreWhole: AuditCheck<RecordedEvent> = {
  name: 'hash-chains-are-whole',
  about: 'every event still has the content and the predecessor that its hash was made from',
  counts: 'events',
  start: () => {
    let at: ChainStart | undefined;
    let events = 0;
    return {
      see: (event) => {
        events++;
        const verdict = verifyChain([event], at);
        // Goes on from what is stored, so that one change is not found again in every later event.
        at = { version: event.streamVersion, hash: event.hash };
        return verdict.isIntact ? [] : [violation(placeOf(event), verdict.reason)];
      },
      end: () => [],
      count: () => events,
    };
  },
};
