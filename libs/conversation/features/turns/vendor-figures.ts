import { correctCharge } from '@antiphon/contracts/metering';
import { acrossWorkspaces, translateDatabaseError } from '@antiphon/database';
import type { RequestClient } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type { Models } from '@antiphon/providers-features';
import type pg from 'pg';

/** Time for which a vendor is asked for the usage of a call. Afterwards the estimate stays. */
export const ASKED_FOR = '1 hour';

/** Calls of one sweep. The rest waits for the next one. */
const MAX_CALLS = 200;
const MAX_CONCURRENT = 8;
/** Time within which a sweep asks, and the limit of one question, ms. */
const SWEEP_MS = 20_000;
const QUESTION_MS = 5_000;

// The log knows which charges are final, so that a restart forgets nothing.
const OPEN_SQL = `select workspace, reservation_id, provider, model, generation_id from agent_generations g
  where at > now() - interval '${ASKED_FOR}'
    and exists (select from events e where e.workspace = g.workspace and e.stream_id = 'budget-' || g.reservation_id
      and e.type in ('BudgetSettled', 'BudgetExpired'))
    and not exists (select from events e where e.workspace = g.workspace
      and e.stream_id = 'budget-' || g.reservation_id and e.type = 'BudgetCorrected')
  order by at desc limit ${MAX_CALLS}`;
const DELETE_SQL = `delete from agent_generations where at < now() - 2 * interval '${ASKED_FOR}'`;

interface Row {
  readonly workspace: string;
  readonly reservation_id: string;
  readonly provider: string;
  readonly model: string;
  readonly generation_id: string;
}

export interface VendorFiguresDeps {
  readonly pool: pg.Pool;
  readonly models: Pick<Models, 'findUsage'>;
  readonly requests: Pick<RequestClient, 'request'>;
  readonly logger: Logger;
}

/** Replaces estimated charges with the figures that vendors tell some time after a call. */
export class VendorFigures {
  constructor(private readonly deps: VendorFiguresDeps) {}

  /** Asks for each estimated call of the last hour. Returns the number of corrected charges. */
  async sweep(): Promise<number> {
    const rows = await this.open();
    const endsAt = performance.now() + SWEEP_MS;
    let next = 0;
    let corrected = 0;
    const work = async (): Promise<void> => {
      for (let row = rows[next++]; row && performance.now() < endsAt; row = rows[next++])
        if (await this.settle(row)) corrected++;
    };
    await Promise.all(Array.from({ length: MAX_CONCURRENT }, work));
    if (rows.length > 0) this.deps.logger.info({ asked: rows.length, corrected }, 'vendor figures asked');
    return corrected;
  }

  private async open(): Promise<readonly Row[]> {
    try {
      const queries = acrossWorkspaces(this.deps.pool);
      await queries.query({ name: 'agent_generations_delete', text: DELETE_SQL });
      return (await queries.query<Row>({ name: 'agent_generations_open', text: OPEN_SQL })).rows;
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }

  /** Returns true if the charge is the vendor's figure now. The next sweep tries a failure again. */
  private async settle(row: Row): Promise<boolean> {
    const { workspace, provider, model } = row;
    const [reservationId, generationId] = [row.reservation_id, row.generation_id];
    try {
      const signal = AbortSignal.timeout(QUESTION_MS);
      const usage = await this.deps.models.findUsage({
        workspace,
        provider,
        model,
        id: generationId,
        signal,
      });
      if (usage === null) return false;
      const request = { workspace, reservationId, generationId, usage };
      return (await this.deps.requests.request(correctCharge, request)).corrected;
    } catch (err) {
      this.deps.logger.warn({ err, provider, reservationId }, 'vendor figure not learnt');
      return false;
    }
  }
}
