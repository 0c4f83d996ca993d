import { AGENT_TEXTS, type AgentFields } from './agent-causes.js';
import { FILE_TEXTS, type FileFields } from './file-causes.js';
import { MCP_TEXTS, type McpFields } from './mcp-causes.js';
import { PROVIDER_TEXTS, type ProviderFields } from './provider-causes.js';
import { REMOTE_TEXTS, type RemoteFields } from './remote-causes.js';

export type { AnswerProblem } from './provider-causes.js';

/** Fields of each kind of cause. */
interface Fields extends AgentFields, FileFields, McpFields, ProviderFields, RemoteFields {
  /** Text of a provider, a tool, a person or a dependency, or a text that an old event recorded. */
  text: { readonly text: string };
  /** Error of a dependency, with its code. */
  error: { readonly code: string; readonly text: string };
  /** Failure with a code of this system, because of `why`. */
  failed_with: { readonly code: string; readonly why: Cause };
  internal_error: unknown;

  provider_paused: {
    readonly provider: string;
    readonly until: string;
    /** Last error of the provider; null without a try. */
    readonly lastError: string | Cause | null;
  };
  max_iterations: { readonly limit: number };
  agent_ended: unknown;
  /** The person's or the runtime's reason is null if there is none. */
  agent_held: { readonly agentId: string; readonly reason: string | null };
  agent_in_error: {
    readonly agentId: string;
    readonly code: string;
    readonly failures: number;
    readonly until: string;
  };
  agent_without_place: { readonly agentId: string };
  agent_unknown: { readonly agentId: string };
  preparers_lost: unknown;

  turn_cancelled: unknown;
  driver_stopped: unknown;
  driver_lost: unknown;
  answer_too_long: unknown;
  answer_not_storable: unknown;
  fact_not_storable: unknown;
  too_many_tool_calls: { readonly calls: number };
  tool_name_too_long: unknown;
  tool_input_too_deep: unknown;
  tool_input_too_long: unknown;

  tool_unknown: { readonly name: string };
  /** The call that a model asked for cannot be made (`ToolCallProblem`). */
  tool_call_unusable: { readonly problem: string };
  tool_callers_lost: unknown;
  tool_retrier_lost: unknown;
  tool_unsent: unknown;
  tool_cancelled: unknown;
  /** It is unknown whether the tool acted, because of `why`. */
  tool_outcome_unknown: { readonly why: Cause };
  tool_answer_lost: unknown;
  tool_running_at_cancel: unknown;
  /** The sandbox has the tool, and refused it at its start: `status` and `reason` are of it. */
  tool_refused: { readonly name: string; readonly status: string; readonly reason: string };
  tool_missing: { readonly name: string };
  tool_result_unknown: { readonly result: string };
  tool_unapproved: unknown;
  /** `rule` is the number of the rule in `[[agents.policy]]`, from 1. */
  tool_denied_by_rule: { readonly name: string; readonly rule: number };
  tool_input_invalid: { readonly issues: string };
  /** `old` does not occur, and `near` describes the nearest text. */
  edit_no_match: { readonly near: Cause };
  /** An edit whose text is in the file in another form, which is the `proposal`. */
  edit_not_made: { readonly why: Cause; readonly proposal: string };
  tool_changed: unknown;
  tool_input_too_large: { readonly bytes: number; readonly max: number };
  tool_output_too_large: { readonly bytes: number; readonly max: number };
  /** `sample` is base64 of the first bytes. */
  tool_output_not_text: { readonly bytes: number; readonly sample: string };
  tool_timeout: { readonly timeoutMs: number };
  tool_call_cancelled: unknown;
  tool_trapped: { readonly detail: string };
  tool_process_ended: { readonly detail: string };
  tool_memory_limit: { readonly detail: string };
  tool_output_limit: { readonly detail: string };
  /** The turn `of` is null if no turn is made again. */
  tool_not_recorded: { readonly call: string; readonly of: string | null; readonly recorded: string };

  approval_expired: { readonly by: string };
  approval_denied: { readonly reason: string };
  approval_voided: unknown;
  hand_over_not_made: unknown;

  request_circle: { readonly agents: string };
  turn_given_already: unknown;
  hop_limit: { readonly hops: number; readonly agents: string };
  agent_not_configured: unknown;
  agent_configured_again: unknown;
  agent_processes_lost: unknown;
  agent_turn_ended: unknown;
  agent_trial: unknown;
  agent_silent: { readonly lastSeenAt: string };
  agent_works_again: unknown;
  tree_place_free: unknown;
  deadline_reached: unknown;

  agent_missing: { readonly agentId: string };
  agent_answers_late: { readonly timeoutMs: number };
  agent_turn_cancelled: { readonly agentId: string };
  agent_failed: { readonly agentId: string; readonly why: Cause };
  work_processes_lost: { readonly processes: number };
  log_quota: Readonly<Record<'bytes' | 'limit', number>>;
  prompt_too_large: { readonly bytes: number };
  agent_terminated: { readonly agentId: string };
  attempt_failed: unknown;
  plan_file_removed: unknown;
  plan_file_empty: unknown;
  plan_step_failed: { readonly stepId: string; readonly why: Cause };
  plan_turn_limit: { readonly turns: number };
  plan_step_not_ended: unknown;
}

type Kind = keyof Fields;

/** Texts of the problems of a tool call that cannot be made. */
const CALL_PROBLEMS: Readonly<Record<string, string>> = {
  not_json: 'its arguments are not valid JSON',
  not_object: 'its arguments are not a JSON object',
  too_complex: 'its arguments nest too deep or have too many values',
  incomplete: 'a part of the answer could not be read',
  cut: 'the answer reached its length limit, so this last call may be incomplete',
};

/** Cause of a fact: a code with its fields. Its text is rendered on read. */
export type Cause = { [K in Kind]: { readonly kind: K } & Fields[K] }[Kind];

type Texts = { readonly [K in Kind]: (fields: Fields[K]) => string };

/** Texts for people and models. They may be reworded: no rule, replay or hash depends on them. */
export const TEXTS: Texts = {
  ...AGENT_TEXTS,
  ...FILE_TEXTS,
  ...MCP_TEXTS,
  ...PROVIDER_TEXTS,
  ...REMOTE_TEXTS,
  text: ({ text }) => text,
  error: ({ code, text }) => `${code}: ${text}`,
  failed_with: ({ code, why }) => `${code}: ${textOf(why)}`,
  internal_error: () => 'an internal error',

  provider_paused: ({ provider, until, lastError }) => {
    const error = typeof lastError === 'string' || lastError === null ? lastError : textOf(lastError);
    const because = error === null ? '' : `; it last failed with: ${error}`;
    return `provider ${provider} is paused until ${until} after failures in a row${because}`;
  },
  max_iterations: ({ limit }) =>
    `the agent made ${limit} model calls without coming to an end (max_iterations)`,
  agent_ended: () => 'the agent of this turn has ended',
  agent_held: ({ agentId, reason }) => `agent "${agentId}" is paused${reason === null ? '' : `: ${reason}`}`,
  agent_in_error: ({ agentId, code, failures, until }) =>
    `agent "${agentId}" is held after ${failures === 1 ? 'a turn' : `${failures} turns in a row`} that failed with ${code}; ` +
    `one waiting turn is tried at ${until}`,
  agent_without_place: ({ agentId }) => `agent "${agentId}" waits for a place in its tree`,
  agent_unknown: ({ agentId }) => `the agent "${agentId}" is not configured any more`,
  preparers_lost: () => 'the processes that prepared a tool call for its approval were lost',

  turn_cancelled: () => 'the turn was cancelled',
  driver_stopped: () => 'the process that drove this turn was stopped',
  driver_lost: () => 'the process that drove this turn was lost',
  answer_too_long: () => 'the answer is longer than can be kept',
  answer_not_storable: () => 'the answer of the provider cannot be stored',
  fact_not_storable: () => 'the result is larger than an event may be, or is no text that can be stored',
  too_many_tool_calls: ({ calls }) => `the model asked for ${calls} tool calls at once`,
  tool_name_too_long: () => 'the model named a tool at length',
  tool_input_too_deep: () => 'the arguments of a tool call nest too deep',
  tool_input_too_long: () => 'the arguments of the tool calls are too long',

  tool_unknown: ({ name }) => `there is no tool "${name}" for this agent`,
  tool_call_unusable: ({ problem }) => `the tool was not run: ${CALL_PROBLEMS[problem] ?? problem}`,
  tool_callers_lost: () => 'every process that made this call was lost, and the call may be the reason',
  tool_retrier_lost: () => 'the process that tried this tool again was lost',
  tool_unsent: () => 'the sandbox could not be reached; the tool was not run',
  tool_cancelled: () => 'the turn was cancelled before the tool ran',
  tool_outcome_unknown: ({ why }) =>
    `${textOf(why)}; whether the tool acted is unknown, and it was not run again`,
  tool_answer_lost: () => 'the answer of the tool was lost',
  tool_running_at_cancel: () => 'the turn was cancelled while the tool ran',
  tool_refused: ({ name, status, reason }) => `the tool ${name} is ${status}: ${reason}`,
  tool_missing: ({ name }) => `there is no tool ${name}`,
  tool_result_unknown: ({ result }) => `no call of this conversation has a result "${result}"`,
  edit_not_made: ({ why, proposal }) =>
    `${textOf(why)}\nNothing was changed. The file has this text there; repeat the edit with it as \`old\` if you mean it:\n${proposal}`,
  tool_input_invalid: ({ issues }) => issues,
  edit_no_match: ({ near }) => `\`old\` does not occur. ${textOf(near)}`,
  tool_denied_by_rule: ({ name, rule }) =>
    `this call of ${name} is denied by rule ${rule} of the agent's policy; it was not run`,
  tool_unapproved: () => 'this call needs an approval and came without one; it was not run',
  tool_changed: () => 'the tool has changed since this call was approved; it was not run',
  tool_input_too_large: ({ bytes, max }) => `an input of ${bytes} bytes, at most ${max}`,
  tool_output_too_large: ({ bytes, max }) =>
    `output_limit: the tool's output takes ${bytes} bytes, at most ${max} are kept`,
  tool_output_not_text: ({ bytes, sample }) =>
    `invalid_output: ${bytes} bytes that are not UTF-8, base64 ${sample}`,
  tool_timeout: ({ timeoutMs }) => `timeout: the tool did not answer within ${timeoutMs} ms`,
  tool_call_cancelled: () => 'the call was cancelled',
  tool_trapped: ({ detail }) => `the tool trapped: ${detail}`,
  tool_process_ended: ({ detail }) => `the tool's process ended: ${detail}`,
  tool_memory_limit: ({ detail }) => `memory_limit: ${detail}`,
  tool_output_limit: ({ detail }) => `output_limit: ${detail}`,
  tool_not_recorded: ({ call, of, recorded }) => {
    const has = recorded === '' ? 'which has none' : `which has ${recorded}`;
    const whose = of === null ? 'this turn is made again of none' : `of turn ${of}, ${has}`;
    return `the model asked for ${call}, which is not in the record: ${whose}. A what-if makes no tool call of its own`;
  },

  approval_expired: ({ by }) => `this call had no answer to its approval by ${by}; it was not run`,
  approval_denied: ({ reason }) =>
    `this call was not approved${reason === '' ? '' : `: ${reason}`}; it was not run`,
  approval_voided: () => 'the tool has changed since this call was to be approved; it was not run',
  hand_over_not_made: () =>
    '[runtime] Your answer promises a hand-over, but you did not call the tool hand_over. ' +
    'Call it now, or answer the user yourself.',

  request_circle: ({ agents }) => `the request went in a circle without a new fact: ${agents}`,
  turn_given_already: () => 'this step gives the turn to another agent already',
  hop_limit: ({ hops, agents }) => `the request passed ${hops} agents already (limit hops): ${agents}`,
  agent_not_configured: () => 'not in the configuration',
  agent_configured_again: () => 'in the configuration again',
  agent_processes_lost: () => 'the processes that drove a turn of it were lost again and again',
  agent_turn_ended: () => 'the turn that lost its processes has ended',
  agent_trial: () => 'one waiting turn is tried',
  agent_silent: ({ lastSeenAt }) => `no heartbeat since ${lastSeenAt}`,
  agent_works_again: () => 'a process works for it again',
  tree_place_free: () => 'a place in the tree is free',
  deadline_reached: () => 'the deadline has passed',

  agent_answers_late: ({ timeoutMs }) => `the agent did not answer within ${timeoutMs} ms`,
  agent_turn_cancelled: ({ agentId }) => `the turn of the agent ${agentId} was cancelled`,
  agent_failed: ({ agentId, why }) => `the agent ${agentId} failed: ${textOf(why)}`,
  prompt_too_large: ({ bytes }) => `its prompt has ${bytes} bytes`,
  log_quota: ({ bytes, limit }) =>
    `the log of the workspace has ${bytes} bytes, and its quota is ${limit}. What to do: raise \`[retention] max_log_bytes\`, or archive old events`,
  work_processes_lost: ({ processes }) =>
    `${processes} processes that took up this work were lost, and the work may be the reason`,
  agent_missing: ({ agentId }) => `there is no agent "${agentId}"`,
  agent_terminated: ({ agentId }) => `the agent "${agentId}" is terminated`,
  attempt_failed: () => 'failed',
  plan_file_removed: () => 'the file of the plan was removed',
  plan_file_empty: () => 'the file of the plan has no steps',
  plan_step_failed: ({ stepId, why }) => `step ${stepId}: ${textOf(why)}`,
  plan_turn_limit: ({ turns }) => `the run has had ${turns} turns`,
  plan_step_not_ended: () => 'the turn ended without a call of plan_step for this step',
};

/** Returns the text of a cause. A kind of a newer version is shown by its code. */
export const textOf = (cause: Cause | undefined): string => {
  if (cause === undefined) return '';
  const texts = TEXTS as unknown as Record<string, (fields: unknown) => string>;
  return Object.hasOwn(texts, cause.kind) ? (texts[cause.kind]?.(cause) ?? '') : cause.kind;
};

/** Returns a text of outside as a cause. */
export const textCause = (text: string): Cause => ({ kind: 'text', text });

type CreateError<E> = (
  code: string,
  message: string,
  options: { readonly cause: Cause; readonly data?: Readonly<Record<string, unknown>> },
) => E;

/** Creates an error by a factory of the kernel. Its cause is recorded, and not the text of it. */
export const causedError = <E>(
  create: CreateError<E>,
  code: string,
  cause: Cause,
  data: Readonly<Record<string, unknown>> = {},
): E => create(code, textOf(cause), { cause, data });

/** Returns the cause that an error of this process has, or its message as a text of outside. */
export const causeOf = ({ message, cause }: { readonly message: string; readonly cause?: unknown }): Cause =>
  typeof (cause as Partial<Cause> | undefined)?.kind === 'string' && !(cause instanceof Error)
    ? (cause as Cause)
    : textCause(message);

/** Returns the text of a fact. Its first schema version has it as `message`. */
export const messageOf = ({
  cause,
  message = '',
}: {
  readonly cause?: Cause;
  readonly message?: string;
}): string => (cause ? textOf(cause) : message);

/** Returns the data of an event with the text of its cause, in the fields of events before causes. */
export const withMessage = <D extends object>(data: D): D => {
  const { cause, reason } = data as { cause?: Partial<Cause> | null; reason?: unknown };
  if (typeof cause?.kind !== 'string') return data;
  const text = textOf(cause as Cause);
  return { ...data, ...(reason === null ? { reason: text } : { message: text }) };
};
