import { Controller, Inject } from '@nestjs/common';
import type pg from 'pg';
import { correctCharge } from '@antiphon/contracts/metering';
import type { CorrectChargeRequest } from '@antiphon/contracts/metering';
import type { EventStore } from '@antiphon/event-store';
import { conflict } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { DATABASE_POOL, EVENT_STORE } from '@antiphon/service-host';
import { findCallEnd, findReservation, outcomeOfCall } from '../ledger/find-outcome.js';
import type { CallEnd } from '../ledger/find-outcome.js';
import type { BudgetLedger } from '../ledger/ledger.js';
import { BUDGET_LEDGER } from '../metering.tokens.js';

const isEstimated = (end: CallEnd): boolean => {
  const outcome = outcomeOfCall(end);
  return outcome.kind === 'unknown' || (outcome.kind === 'used' && outcome.estimated);
};

/** Replaces the estimated charge of a call with the figure of its vendor, once. */
@Controller()
export class CorrectCharge {
  constructor(
    @Inject(DATABASE_POOL) private readonly pool: pg.Pool,
    @Inject(EVENT_STORE) private readonly store: EventStore,
    @Inject(BUDGET_LEDGER) private readonly ledger: BudgetLedger,
  ) {}

  @HandleRequest(correctCharge)
  async handle(request: CorrectChargeRequest): Promise<{ corrected: boolean }> {
    const { workspace, generationId, usage } = request;
    const reservationId = request.reservationId.toLowerCase();
    const known = await findReservation(this.pool, workspace, reservationId);
    if (!known) return { corrected: false };
    const end = await findCallEnd(this.store, known);
    if (typeof end === 'string' || end.data.generationId !== generationId)
      throw conflict(
        'METERING.NOT_IN_LOG',
        `the log has no end of reservation ${reservationId} with this id`,
      );
    if (!isEstimated(end)) return { corrected: false };
    const command = { type: 'Correct', reservationId, figure: { generationId, usage } } as const;
    // The cache does not learn of charges in the agent's commits. A second look reads the rows.
    const lookAgain = { sessionId: known.sessionId, decide: () => Promise.resolve(command) };
    const { corrected } = await this.ledger.submit(workspace, command, lookAgain);
    return { corrected };
  }
}
