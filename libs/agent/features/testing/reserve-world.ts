import type pg from 'pg';
import { BudgetReserved, budgetStream } from '@antiphon/contracts/metering';
import type { BudgetEventOf } from '@antiphon/contracts/metering';
import { borrowClient, createPool } from '@antiphon/database';
import type { RecordedEvent } from '@antiphon/event-store';
import { conflict } from '@antiphon/kernel';
import { createTestDatabase } from '@antiphon/testing';
import { WORKSPACE, createAgentWorld, newAddress, submitTo } from './agent-world.js';
import type { AgentWorld, TestProcess } from './agent-world.js';
import { createTestModel, says } from './test-model.js';
import type { TestModel } from './test-model.js';

type Responders = AgentWorld['responders'];

/** Stands in for a vendor's bound: the bytes of the rendered prompt. */
const bytesOf = (prompt: object): number => Buffer.byteLength(JSON.stringify(prompt));

export const assemble: Responders['assemble'] = async ({ atLeast }) => ({
  ...{ soul: null, facts: [], tokens: 0, version: atLeast },
});
export const completed = (input: unknown) => ({
  ...{ outcome: 'completed' as const, content: JSON.stringify(input), isError: false },
  ...{ moduleDigest: 'digest', durationMs: 1 },
});
const reserve: Responders['reserve'] = async ({ reservationId, maxOutputTokens }) => ({
  ...{ granted: true, reservationId, maxOutputTokens, price: null },
});

export const callsOf = (events: readonly RecordedEvent[]): readonly RecordedEvent[] =>
  events.filter(({ type }) => type === 'ModelCallStarted');
export const typesOf = (events: readonly RecordedEvent[]): string[] => events.map(({ type }) => type);

/**
 * Locks the log's head, the last lock of every append: none commits until the returned function
 * is called.
 */
export const holdCommits = async (pool: pg.Pool): Promise<() => Promise<void>> => {
  const { client, release } = await borrowClient(pool);
  // On a busy machine a test may take longer than the timeout of the pool.
  await client.query('begin; set local idle_in_transaction_session_timeout = 0');
  await client.query('select pg_advisory_xact_lock(1095652432, 1)');
  return async () => {
    await client.query('commit');
    release();
  };
};

/** Agents whose commits may reserve their calls, for specs of these reservations. */
export class ReserveWorld {
  readonly model: TestModel = Object.assign(createTestModel(), { inputBound: bytesOf });
  /** Requests that metering and memory got. */
  readonly asked: Responders['asked'];

  private constructor(
    readonly world: AgentWorld,
    /** The owner of the tables. */
    readonly admin: ReturnType<typeof createPool>,
  ) {
    this.asked = world.responders.asked;
  }

  static async open(): Promise<ReserveWorld> {
    const database = await createTestDatabase();
    const world = await createAgentWorld(database, process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
    return new ReserveWorld(world, createPool({ url: database.url, applicationName: 'spec', max: 1 }));
  }

  /** Begins a test: the database knows the price of the model, and nothing was asked. */
  async begin(): Promise<void> {
    this.model.reply = async () => says('hello');
    this.model.requests.length = 0;
    for (const kept of Object.values(this.asked)) kept.length = 0;
    await this.admin
      .query(`insert into budget_rules (workspace, provider, model, input_price, output_price, valid_until)
      values ('${WORKSPACE}', 'first', 'm', 1000000, 2000000, now() + interval '1 hour')
      on conflict (workspace, provider, model) do update set valid_until = excluded.valid_until`);
  }

  /** Ends a test: stops its processes, and restores the answers of the other services. */
  async end(): Promise<void> {
    const { responders } = this.world;
    responders.assemble = assemble;
    responders.reserve = reserve;
    responders.tool = async ({ input }) => completed(input);
    await this.world.stopAll();
  }

  async close(): Promise<void> {
    await this.admin.end();
    await this.world.close();
  }

  start(options: Parameters<AgentWorld['process']>[0] = {}): TestProcess {
    return this.world.process({ models: this.model, ...options });
  }

  /** Returns a session of one turn, whose next turn can be reserved by its commit. */
  async openSession(agent: TestProcess): Promise<string> {
    const { sessionId } = await submitTo(agent, { address: newAddress() });
    await this.world.ended(sessionId);
    this.asked.reserve.length = 0;
    return sessionId;
  }

  /** Refuses a bound above that of a reservation that exists, as metering does. */
  readonly refuseLarger: Responders['reserve'] = async (request) => {
    const { rows } = await this.admin.query<{ bound: number }>(
      `select (reserved ->> 'inputBound')::int as bound from budget_reservations where reservation_id = $1`,
      [request.reservationId],
    );
    if (rows[0] && request.inputBound > rows[0].bound)
      throw conflict('METERING.RESERVATION_CONFLICT', 'it was made for another call');
    return reserve(request);
  };

  /** Returns the events of the reservation of a call. */
  readonly budgetOf = ({ data }: RecordedEvent): Promise<RecordedEvent[]> =>
    this.world.store.readStream(WORKSPACE, budgetStream(String(data['reservationId'])));

  async reservedBy(call: RecordedEvent): Promise<BudgetEventOf<'BudgetReserved'>['data']> {
    return BudgetReserved.shape.data.parse((await this.budgetOf(call))[0]?.data);
  }

  /** Returns the bytes of the prompt of the model's request with this number, from 0. */
  sizeOf(index: number): number {
    const {
      signal: _signal,
      maxOutputTokens: _max,
      streaming: _streaming,
      workspace: _own,
      ...prompt
    } = this.model.requests[index]!;
    return bytesOf(prompt);
  }

  /** Returns the number of reservations that commits of a session made. */
  async countReserved(sessionId: string): Promise<number> {
    const { rows } = await this.admin.query<{ made: number }>(
      'select count(*)::int as made from budget_reservations where session_id = $1',
      [sessionId],
    );
    return rows[0]?.made ?? 0;
  }

  /** Returns the number of appends that wait for the log. */
  async countWaiting(): Promise<number> {
    const { rows } = await this.admin.query<{ waiting: number }>(
      `select count(*)::int as waiting from pg_locks where locktype = 'advisory' and not granted
        and database = (select oid from pg_database where datname = current_database())`,
    );
    return rows[0]?.waiting ?? 0;
  }
}
