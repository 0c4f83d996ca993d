import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { acrossWorkspaces } from '@antiphon/database';
import { compareProjection, createPostgresEventStore, rebuildProjection } from '@antiphon/event-store';
import type { EventStore, EventStorePg, NewEvent } from '@antiphon/event-store';
import { openMetering } from '../metering-fixtures.spec.js';
import { budgetLedger, budgetUsage } from './projections.js';

jest.setTimeout(60_000);

const GOLDEN = fileURLToPath(new URL('../../../contracts/events/golden/budget', import.meta.url));
const golden = (type: string, data: object): NewEvent => {
  const { schemaVersion, data: known } = JSON.parse(
    readFileSync(`${GOLDEN}/${type}.v1.json`, 'utf8'),
  ) as NewEvent;
  return {
    ...{ eventId: randomUUID(), type, schemaVersion, data: { ...known, ...data } },
    metadata: { correlationId: 'spec', service: 'metering' },
  };
};

let metering: Awaited<ReturnType<typeof openMetering>>;
let own: ReturnType<(typeof metering)['start']>;
let store: EventStore & EventStorePg;
beforeAll(async () => {
  metering = await openMetering();
  own = metering.start();
  store = createPostgresEventStore(own.pool);
});
afterAll(async () => {
  await store?.close();
  await metering?.close();
});

/** Events of a reservation, in order. */
const LIVES = [
  ['BudgetReserved'],
  ['BudgetReserved', 'BudgetSettled'],
  ['BudgetReserved', 'BudgetReleased'],
  ['BudgetReserved', 'BudgetReleased', 'BudgetCorrected'],
  ['BudgetReserved', 'BudgetExpired'],
  ['BudgetReserved', 'BudgetExpired', 'BudgetCorrected'],
  ['BudgetReserved', 'BudgetSettled', 'BudgetCorrected'],
  ['BudgetReserved', 'BudgetSettled', 'BudgetScopeFrozen', 'BudgetScopeUnfrozen'],
];
const reservation = fc.record({
  life: fc.constantFrom(...LIVES),
  agentId: fc.constantFrom('main', 'other', 'x'.repeat(3_000)),
  model: fc.constantFrom('small', 'large'),
  tokens: fc.integer({ min: 1, max: 1_000 }),
  root: fc.option(fc.constantFrom('root')),
});

/** Sums of all rows of the ledger, as reads of usage added them up before. */
const SUMS_SQL = `select reserved ->> 'agentId' as agent_id, coalesce(reserved -> 'agents' ->> -1, reserved ->> 'agentId') as root_id,
    (reserved ->> 'provider') || '/' || (reserved ->> 'model') as model, count(*)::integer as calls,
    sum(charged_tokens)::integer as charged_tokens, sum(charged_micro_usd)::integer as charged_micro_usd,
    coalesce(sum((reserved ->> 'tokens')::bigint) filter (where open_until is not null), 0)::integer as reserved_tokens
  from budget_reservations group by 1, 2, 3 order by 1, 2, 3`;
const USAGE_SQL = `select agent_id, root_id, model, sum(calls)::integer as calls, sum(charged_tokens)::integer as charged_tokens,
    sum(charged_micro_usd)::integer as charged_micro_usd, sum(reserved_tokens)::integer as reserved_tokens
  from budget_usage group by 1, 2, 3 order by 1, 2, 3`;

describe('the projection of usage', () => {
  it('equals the sums of the reservations, for any lives of them, and their fold', () =>
    fc.assert(
      fc.asyncProperty(fc.array(reservation, { maxLength: 12 }), fc.boolean(), async (all, reads) => {
        const ids = all.map(() => randomUUID());
        // The steps of the reservations interleave.
        for (let step = 0; step < 4; step++) {
          const streams = all.flatMap(({ life, agentId, model, tokens, root }, index) => {
            const [type, reservationId] = [life[step], ids[index] ?? ''];
            if (type === undefined) return [];
            const agents = root === null ? {} : { agents: [agentId, root] };
            const data = { reservationId, ...(step === 0 ? { agentId, model, tokens, ...agents } : {}) };
            const streamId = `budget-${reservationId}`;
            return [{ streamId, expectedVersion: 'any' as const, events: [golden(type, data)] }];
          });
          if (streams.length > 0) await store.append({ workspace: 'default', streams });
          if (reads) await own.usage();
        }
        await own.usage();
        await rebuildProjection(metering.admin, budgetLedger);
        const queries = acrossWorkspaces(own.pool);
        expect((await queries.query(USAGE_SQL)).rows).toEqual((await queries.query(SUMS_SQL)).rows);
        expect(await compareProjection(metering.admin, budgetUsage)).toMatchObject({ differing: 0 });
      }),
      { numRuns: 8 },
    ));

  it('has one row for the calls of an agent, model, key and day, which a read of usage adds up', async () => {
    const calls = 300;
    const before = (await own.usage({ agentId: 'many' })).total.calls;
    expect(before).toBe(0);
    for (let n = 0; n < calls; n += 60)
      await store.append({
        workspace: 'default',
        streams: Array.from({ length: 60 }, () => {
          const reservationId = randomUUID();
          const events = [
            golden('BudgetReserved', { reservationId, agentId: 'many', tokens: 10 }),
            golden('BudgetSettled', { reservationId, inputTokens: 3, outputTokens: 4 }),
          ];
          return { streamId: `budget-${reservationId}`, expectedVersion: 'any' as const, events };
        }),
      });
    expect(await own.usage({ agentId: 'many' })).toMatchObject({
      total: { calls, settledTokens: 7 * calls, reservedTokens: 0 },
    });
    const { rows } = await metering.admin.query(
      `select count(*)::integer as rows from budget_usage where agent_id = 'many'`,
    );
    expect(rows).toEqual([{ rows: 1 }]);
    const { groups = [] } = await own.usage({ agentId: 'many', by: 'day' });
    const day = groups[0]?.name ?? '';
    expect((await own.usage({ agentId: 'many', day })).total.calls).toBe(calls);
    expect((await own.usage({ agentId: 'many', day: '2001-01-01' })).total.calls).toBe(0);
    const head = await store.headPosition();
    expect(await own.usage({ agentId: 'many', at: head - 100 })).toMatchObject({
      total: { calls: calls - 50 },
    });
  });
});
