import type { ApprovalView } from '@antiphon/contracts/agent';
import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../command-context.js';
import { askJson, getJson } from '../connection/http-client.js';

const MAX_INPUT = 2_000;

const inputOf = ({ input }: ApprovalView): string => {
  const text = JSON.stringify(input);
  return text.length > MAX_INPUT ? `${text.slice(0, MAX_INPUT)}… (${text.length} characters)` : text;
};

const endOf = ({ status, answeredBy, closedAt, reason }: ApprovalView): string =>
  `${status}${answeredBy === null ? '' : ` by ${answeredBy}`} at ${closedAt ?? '?'}${reason ? `: ${reason}` : ''}`;

const render = (approval: ApprovalView): string => {
  const { id, agentId, tool, status, sessionId, expiresAt, answerBy, escalatedAt, escalateTo } = approval;
  const told = escalatedAt === null ? '' : `; ${escalateTo} was told at ${escalatedAt}`;
  const state = status === 'pending' ? `waits for ${answerBy} until ${expiresAt}${told}` : endOf(approval);
  return [
    `${id}  ${agentId} wants to call ${tool}`,
    `  ${inputOf(approval)}`,
    `  ${state}`,
    `  session ${sessionId}`,
  ].join('\n');
};

interface ListOptions {
  readonly all?: boolean;
  readonly session?: string;
  readonly limit: string;
  readonly cursor?: string;
}

const list = async ({ output, gateway }: CommandContext, options: ListOptions): Promise<void> => {
  const { all, ...rest } = options;
  const query = new URLSearchParams({ ...rest, ...(all ? {} : { status: 'pending' }) });
  const page = (await getJson(gateway(), `/api/v1/approvals?${query}`)) as {
    approvals: ApprovalView[];
    nextCursor: string | null;
  };
  const more = page.nextCursor === null ? [] : [`more: --cursor ${page.nextCursor}`];
  const lines = page.approvals.length === 0 ? ['nothing waits for an answer'] : page.approvals.map(render);
  output.result(page, [...lines, ...more].join('\n'));
};

const pathOf = (id: string): string => `/api/v1/approvals/${encodeURIComponent(id)}`;

const show = async ({ output, gateway }: CommandContext, id: string): Promise<void> => {
  const approval = (await getJson(gateway(), pathOf(id))) as ApprovalView;
  output.result(approval, render(approval));
};

interface AnswerOptions {
  readonly reason?: string;
  readonly digest?: string;
}

const answer =
  (decision: 'approve' | 'deny') =>
  async ({ output, gateway }: CommandContext, id: string, options: AnswerOptions): Promise<void> => {
    const body = { decision, ...options };
    const reply = (await askJson(gateway(), `${pathOf(id)}/answer`, { method: 'POST', body })) as {
      answeredBy: string;
      answeredAt: string;
    };
    const done = decision === 'approve' ? 'approved' : 'denied';
    output.result(reply, `${id}: ${done} by ${reply.answeredBy} at ${reply.answeredAt}`);
  };

const EXAMPLES = `
Examples:
  antiphon approvals list
  antiphon approvals approve 0b9d… --digest 5f1c…   only if it is still what you have read
  antiphon approvals deny 0b9d… --reason "not on production"`;

const addAnswer = (
  approvals: Command,
  context: ContextOf,
  decision: 'approve' | 'deny',
  description: string,
): void => {
  approvals
    .command(`${decision} <id>`)
    .description(description)
    .option('--reason <text>', 'kept in the log; with a refusal the model is told')
    .option('--digest <digest>', 'refuse to answer if the approval is not the one with this digest')
    .addHelpText('after', EXAMPLES)
    .action((id: string, options: AnswerOptions, command: Command) =>
      answer(decision)(context(command), id, options),
    );
};

/** `antiphon approvals list|show|approve|deny` */
export const addApprovals = (program: Command, context: ContextOf): void => {
  const approvals = program
    .command('approvals')
    .description('tool calls that wait for somebody')
    .addHelpText('after', EXAMPLES);
  approvals
    .command('list')
    .description('what waits for an answer, across all sessions, newest first')
    .option('--all', 'also what was answered, has expired or was withdrawn')
    .option('--session <id>', 'only of this session')
    .option('--limit <n>', 'approvals a page, 1 to 200', '50')
    .option('--cursor <cursor>', 'where an earlier page ended')
    .addHelpText('after', EXAMPLES)
    .action((options: ListOptions, command: Command) => list(context(command), options));
  approvals
    .command('show <id>')
    .description('one approval: what would be called, with which arguments')
    .action((id: string, _: unknown, command: Command) => show(context(command), id));
  addAnswer(approvals, context, 'approve', 'let the call be made, as it was asked for');
  addAnswer(approvals, context, 'deny', 'refuse the call; the model is told');
};
