import type pg from 'pg';
import { channelMessageIdOf } from '@antiphon/agent-log';
import { approvalText } from '@antiphon/channels-domain';
import type { ApprovalPress, Delivery } from '@antiphon/channels-domain';
import type { ChannelMessage } from '@antiphon/contracts/agent';
import type { AnswerApproval, TurnEndWatcher } from '@antiphon/conversation-features';
import { inTransaction, translateDatabaseError } from '@antiphon/database';
import { isAppError, sleep } from '@antiphon/kernel';
import type { DeliveryRef, DeliveryStreams } from './delivery-streams.js';
import type { Channel } from '../settings/channel-directory.js';

interface Row {
  readonly approval_id: string;
  readonly tool: string;
  readonly input: unknown;
  readonly digest: string;
}

const PENDING_SQL = `select approval_id, tool, input, digest from agent_approvals
  where workspace = $1 and session_id = $2 and turn_id = $3 and status = 'pending' order by first_position limit 20`;

export interface ApprovalButtonsDeps {
  readonly streams: DeliveryStreams;
  readonly answers: Pick<AnswerApproval, 'handle'>;
  readonly turnEnds: Pick<TurnEndWatcher, 'waitForEnd'>;
  readonly pool: pg.Pool;
}

/** Interval of looks for approvals of a turn, ms. */
const LOOK_EVERY_MS = 1_000;

const idOf = ({ config: { workspace, name } }: Channel, approvalId: string): string =>
  channelMessageIdOf(workspace, name, `approval/${approvalId}`);

const NOT_HERE = 'This button is about no approval of this conversation.';
const NOT_ALLOWED = 'You may not decide this approval.';

/** Texts of refusals that end an approval or a press. Any other error is repeated. */
const REFUSALS: Readonly<Record<string, string>> = {
  'APPROVAL.NOT_FOUND': 'The approval is not known any more.',
  'APPROVAL.ROLE_TOO_LOW': NOT_ALLOWED,
  'APPROVAL.DIGEST_MISMATCH': 'The call has changed since it was shown.',
};
const CLOSED: Readonly<Record<string, string>> = {
  granted: 'The approval was given before.',
  denied: 'The approval was denied before.',
  expired: 'The approval has expired.',
  voided: 'The approval does not hold any more: the tool has changed.',
  withdrawn: 'The approval is not needed any more: the turn has ended.',
};

const textOfError = (error: unknown): string => {
  if (!isAppError(error)) throw error;
  const { code, data } = error;
  const text = REFUSALS[code] ?? CLOSED[String((data as { status?: unknown } | undefined)?.status)];
  if (text === undefined) throw error;
  return text;
};

/** Shows approvals of waiting turns with buttons, and decides them by presses. */
export class ApprovalButtons {
  constructor(private readonly deps: ApprovalButtonsDeps) {}

  /** Returns true if approvals are shown on the channel. */
  isUsed({ config, plugin, isSynchronous }: Channel): boolean {
    return config.approvers.length > 0 && plugin.description.buttons && !isSynchronous;
  }

  /**
   * Shows the approvals that the turn waits for, until it has ended. The process that takes the
   * delivery over shows the rest.
   */
  async showUntilEnd(
    ref: DeliveryRef,
    channel: Channel,
    delivery: Delivery,
    signal: AbortSignal,
    advance: (approval: DeliveryRef) => Promise<{ readonly over: boolean }>,
  ): Promise<void> {
    if (delivery.turn === null) return;
    const { sessionId, turnId } = delivery.turn;
    const shown = new Set<string>();
    const end = this.deps.turnEnds
      .waitForEnd({ workspace: ref.workspace, sessionId, turnId }, signal)
      .then(() => 'ended' as const);
    const look = () => sleep(LOOK_EVERY_MS, signal).then(() => 'waiting' as const);
    while ((await Promise.race([end, look()])) === 'waiting')
      for (const approval of await this.queue(ref, channel, delivery))
        if (!shown.has(approval.messageId) && (await advance(approval)).over) shown.add(approval.messageId);
  }

  /** Queues a message for each pending approval of the turn, once, and returns all of them. */
  private async queue(
    { workspace }: DeliveryRef,
    channel: Channel,
    { turn, message }: Delivery,
  ): Promise<readonly DeliveryRef[]> {
    if (turn === null || message === null) return [];
    const values = [workspace, turn.sessionId, turn.turnId];
    const query = { name: 'agent_approvals_of_turn', text: PENDING_SQL, values };
    const { rows } = await inTransaction(
      this.deps.pool,
      (client) => client.query<Row>(query),
      workspace,
    ).catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
    const refs: DeliveryRef[] = [];
    for (const { approval_id: approvalId, tool, input, digest } of rows) {
      const ref = { workspace, messageId: idOf(channel, approvalId) };
      const { name, account } = channel.config;
      const text = approvalText(turn.agentId, tool, input);
      const data = { messageId: ref.messageId, channel: name, account, message, approvalId, digest, text };
      await this.deps.streams.commit(ref, (_, now) => ({
        ...{ type: 'AskApproval', data, now },
      }));
      refs.push(ref);
    }
    return refs;
  }

  /**
   * Decides an approval as the sender of the press. Returns the text for the sender. Throws errors
   * after which the press is repeated.
   */
  async decide(
    channel: Channel,
    { approvalId, decision }: ApprovalPress,
    { peer, sender }: ChannelMessage,
  ): Promise<string> {
    const { workspace, name, approvers, approverRole } = channel.config;
    const { state } = await this.deps.streams.read({ workspace, messageId: idOf(channel, approvalId) });
    // An approval that was not shown to this conversation is decided elsewhere.
    if (state.approval === null || state.peer !== peer) return NOT_HERE;
    if (!approvers.includes(sender.id)) return NOT_ALLOWED;
    const approver = {
      ...{ caller: `channel/${name}/${sender.id}`.slice(0, 200), role: approverRole, agentId: null },
      name: sender.name ?? null,
    };
    const request = { workspace, approvalId, decision, reason: '', digest: state.approval.digest, approver };
    try {
      await this.deps.answers.handle(request);
      return decision === 'approve' ? 'Approved.' : 'Denied.';
    } catch (error) {
      return textOfError(error);
    }
  }
}
