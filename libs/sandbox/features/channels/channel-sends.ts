import type { settleSend } from '@antiphon/contracts/sandbox';
import { sendChannel } from '@antiphon/contracts/sandbox';
import { inWorkspace } from '@antiphon/database';
import type { Logger } from '@antiphon/observability';
import type pg from 'pg';
import type { z } from 'zod';

export type SendReply = z.output<typeof sendChannel.reply>;
type Settled = z.output<typeof settleSend.reply>;

const CLAIM = 'insert into channel_sends (workspace, send_key) values ($1, $2) on conflict do nothing';
const END =
  'update channel_sends set outcome = $3 where workspace = $1 and send_key = $2 and outcome is null';
const CLOSE = `insert into channel_sends (workspace, send_key, outcome) values ($1, $2, $3) on conflict do nothing`;
const READ = 'select outcome from channel_sends where workspace = $1 and send_key = $2';
/** Longer than the age up to which the caller settles an attempt. */
const FORGET = `delete from channel_sends where workspace = $1 and claimed_at < now() - interval '30 days'`;

const FORGET_EVERY = 1_000;
/** Maximum length of an outcome that is kept. A longer one is lost with the process that waits. */
const MAX_OUTCOME = 64 * 1024;
const NOT_BEGUN: SendReply = { outcome: 'unreached', reason: 'the request was settled before it left' };

/**
 * Keeps which requests to platforms have begun, and how they ended. A key is claimed once, right
 * before the connection, so that a request whose key is settled never leaves.
 */
export class ChannelSends {
  private claims = 0;

  constructor(
    private readonly pool: pg.Pool,
    private readonly logger: Logger,
  ) {}

  /** Claims a key. Returns false if it is settled or was claimed before. */
  async claim(workspace: string, key: string): Promise<boolean> {
    const db = inWorkspace(this.pool, workspace);
    if (this.claims++ % FORGET_EVERY === 0) await db.query(FORGET, [workspace]);
    return (await db.query(CLAIM, [workspace, key])).rowCount === 1;
  }

  /** Records how a request ended. The caller has the outcome, so that a failure is only logged. */
  async end(workspace: string, key: string, outcome: SendReply): Promise<void> {
    const text = JSON.stringify(outcome);
    if (text.length > MAX_OUTCOME || text.includes('\\u0000')) return;
    try {
      await inWorkspace(this.pool, workspace).query(END, [workspace, key, text]);
    } catch (error) {
      this.logger.warn({ err: error, key }, 'outcome of channel request not recorded');
    }
  }

  /** Returns how a request ended. One that has not begun never leaves from here on. */
  async settle(workspace: string, key: string): Promise<Settled> {
    const db = inWorkspace(this.pool, workspace);
    await db.query(CLOSE, [workspace, key, JSON.stringify(NOT_BEGUN)]);
    const { rows } = await db.query<{ outcome: unknown }>(READ, [workspace, key]);
    const { data } = sendChannel.reply.safeParse(rows[0]?.outcome);
    return data ?? { outcome: 'unknown', reason: 'the process that sent it has ended' };
  }
}
