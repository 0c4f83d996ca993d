import type { ApprovalView } from '@antiphon/contracts/agent';
import type { Command } from 'commander';
import { escapeText } from '../escape-text.js';
import { type AtOption, nextPageLine } from '../connection/gateway-http.js';
import type { CommandContext, ContextOf } from '../output.js';

const MAX_INPUT = 2_000;

const clip = (text: string): string =>
  text.length > MAX_INPUT ? `${text.slice(0, MAX_INPUT)}… (${text.length} characters)` : text;

const renderInput = ({ input, preview }: ApprovalView): string => {
  if (preview !== null)
    return preview
      .split('\n')
      .map((line) => escapeText(line))
      .join('\n  ');
  return clip(JSON.stringify(input));
};

const renderState = (approval: ApprovalView): string => {
  const { status, answeredBy, answerBy, closedAt, reason, expiresAt, escalatedAt, escalateTo } = approval;
  if (status !== 'pending')
    return `${status}${answeredBy === null ? '' : ` by ${answeredBy}`} at ${closedAt ?? '?'}${reason ? `: ${reason}` : ''}`;
  const escalated = escalatedAt === null ? '' : `; escalated to ${escalateTo} at ${escalatedAt}`;
  return `waits for ${answerBy} until ${expiresAt}${escalated}`;
};

const renderEdit = ({ edited }: ApprovalView): string[] =>
  edited === null ? [] : [`  approved with ${clip(JSON.stringify(edited.input))}`];

const render = (approval: ApprovalView): string =>
  [
    `${approval.id}  ${approval.agentId} wants to call ${approval.tool}`,
    `  ${renderInput(approval)}`,
    ...renderEdit(approval),
    `  ${renderState(approval)}`,
    `  session ${approval.sessionId}`,
  ].join('\n');

interface ListOptions {
  readonly all?: boolean;
  readonly session?: string;
  readonly limit: string;
  readonly cursor?: string;
}

const list = async ({ output, http }: CommandContext, options: ListOptions): Promise<void> => {
  const { all, ...rest } = options;
  const query = { ...rest, ...(all ? {} : { status: 'pending' as const }) };
  const page = await (await http()).listApprovals({ query });
  const lines = page.approvals.length === 0 ? ['no approvals'] : page.approvals.map(render);
  output.result(page, [...lines, ...nextPageLine(page.nextCursor)].join('\n'));
};

const show = async ({ output, http }: CommandContext, id: string, at: AtOption): Promise<void> => {
  const approval = await (await http()).getApproval({ params: { id }, query: at });
  output.result(approval, render(approval));
};

interface AnswerOptions {
  readonly reason?: string;
  readonly digest?: string;
  /** JSON, a file, or `-` for standard input. */
  readonly input?: string;
}

const answer =
  (decision: 'approve' | 'deny') =>
  async (
    { output, http, cwd }: CommandContext,
    id: string,
    { input, ...options }: AnswerOptions,
  ): Promise<void> => {
    // Its contracts load slowly, and no other command needs them.
    const { readArguments } = await import('./read-arguments.js');
    const edited = input === undefined ? {} : { input: readArguments(cwd, input) };
    const body = { decision, ...options, ...edited };
    const reply = await (await http()).answerApproval({ params: { id }, body });
    const changed = reply.approvedDigest === undefined ? '' : ' with changed arguments';
    const done = decision === 'approve' ? `approved${changed}` : 'denied';
    output.result(reply, `${id}: ${done} by ${reply.answeredBy} at ${reply.answeredAt}`);
  };

const EXAMPLES = `
Examples:
  antiphon approvals list
  antiphon approvals approve 0b9d… --digest 5f1c…   only if the call is still the one you read
  antiphon approvals approve 0b9d… --input '{"url":"https://example.org/"}'   with other arguments
  antiphon approvals deny 0b9d… --reason "not on production"`;

const addAnswer = (
  approvals: Command,
  context: ContextOf,
  decision: 'approve' | 'deny',
  description: string,
): void => {
  const command = approvals
    .command(`${decision} <id>`)
    .description(description)
    .option('--reason <text>', 'stored in the log; the model sees the reason of a denial')
    .option('--digest <digest>', 'fail unless the approval has this digest')
    .addHelpText('after', EXAMPLES)
    .action((id: string, options: AnswerOptions, own: Command) =>
      answer(decision)(context(own), id, options),
    );
  if (decision === 'approve')
    command.option('--input <json>', 'other arguments for the call: JSON, a file, or - for standard input');
};

/** Adds `antiphon approvals list|show|approve|deny`. */
export const addApprovals = (program: Command, context: ContextOf): void => {
  const approvals = program
    .command('approvals')
    .description('list and answer tool calls that wait for an approval')
    .addHelpText('after', EXAMPLES);
  approvals
    .command('list')
    .description('list pending approvals of all sessions, newest first')
    .option('--all', 'include answered, expired and withdrawn approvals')
    .option('--session <id>', 'only approvals of this session')
    .option('--limit <n>', 'approvals per page, 1 to 200', '50')
    .option('--cursor <cursor>', 'start after this page')
    .addHelpText('after', EXAMPLES)
    .action((options: ListOptions, command: Command) => list(context(command), options));
  approvals
    .command('show <id>')
    .description('show one approval: the tool and its arguments')
    .option('--at <position>', 'as of this position of the log')
    .action((id: string, at: AtOption, command: Command) => show(context(command), id, at));
  addAnswer(approvals, context, 'approve', 'approve the call with the arguments shown');
  addAnswer(approvals, context, 'deny', 'deny the call; the model is told');
};
