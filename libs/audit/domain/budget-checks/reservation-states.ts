import type { BudgetEvent } from '@antiphon/contracts/metering';
import { open, violation } from '../audit-check.js';
import type { EventPlace, Finding, ReservationCheck } from '../audit-check.js';

type State = 'none' | 'reserved' | 'settled' | 'released' | 'expired' | 'corrected';

/** From which state each event may come, and where it leads. */
const TRANSITIONS: Readonly<Partial<Record<BudgetEvent['type'], readonly [from: State, to: State]>>> = {
  BudgetReserved: ['none', 'reserved'],
  BudgetSettled: ['reserved', 'settled'],
  BudgetReleased: ['reserved', 'released'],
  BudgetExpired: ['reserved', 'expired'],
  BudgetCorrected: ['expired', 'corrected'],
};

/** A reservation is made once and ends once: settled, released or expired; only an expired one is corrected, once. */
export const reservationsEndOnce: ReservationCheck = {
  name: 'reservations-end-once',
  about:
    'every reservation is made once and ends once, settled, released or expired; only an expired one is corrected',
  counts: 'reservations',
  start: () => {
    let state: State = 'none';
    let madeAt: EventPlace | undefined;
    let reservations = 0;
    const move = (at: EventPlace, event: BudgetEvent): Finding[] => {
      const transition = TRANSITIONS[event.type];
      if (!transition) return []; // a freeze is told beside the charge
      const [from, to] = transition;
      const findings =
        state === from ? [] : [violation(at, `${event.type} of a reservation that was ${state}`)];
      state = to;
      return findings;
    };
    return {
      see: ({ place, content }) => {
        if (content.type === 'BudgetReserved') {
          reservations++;
          madeAt = place;
        }
        const own = place.streamId === `budget-${content.data.reservationId}`;
        const stray = own ? [] : [violation(place, `${content.type} names ${content.data.reservationId}`)];
        return [...stray, ...move(place, content)];
      },
      end: () => (state === 'reserved' && madeAt ? [open(madeAt, 'the reservation has not ended')] : []),
      count: () => reservations,
    };
  },
};
