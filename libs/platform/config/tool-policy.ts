import type { JsonValue } from '@antiphon/kernel';
import type { AgentConfig, ApprovalRule, PolicyRule } from './antiphon-config.js';
import { findApprovalRule } from './approval-rule.js';
import { matchesPattern } from './prices.js';
import { isToolPattern } from './tool-names.js';

/** A call of a tool that rules are compared with. */
export interface PolicyCall {
  readonly tool: string;
  readonly input: JsonValue;
  /** Description of the tool; undefined for an unknown one. */
  readonly description:
    { readonly idempotent: boolean; readonly grants?: readonly string[] | undefined } | undefined;
}

/** Decision on a call. `rule` is the number of the rule that denies it, from 1. */
export type PolicyDecision =
  | { readonly decision: 'allow' }
  | { readonly decision: 'ask'; readonly approval: ApprovalRule }
  | { readonly decision: 'deny'; readonly rule: number };

/** Approval of a rule that asks, where `[[agents.approvals]]` has no terms for the tool. */
const USUAL_TERMS: Omit<ApprovalRule, 'tool'> = {
  ...{ ask: 'always', answerBy: 'operator', expiresAfterMs: 86_400_000 },
  ...{ escalateAfterMs: 3_600_000, escalateTo: 'admin' },
};

/** Returns the value at a JSON pointer; undefined where there is none. */
const valueAt = (input: JsonValue, pointer: string): JsonValue | undefined =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<JsonValue | undefined>((value, part) => {
      if (value === null || typeof value !== 'object') return undefined;
      return Object.hasOwn(value, part) ? (value as Readonly<Record<string, JsonValue>>)[part] : undefined;
    }, input);

/** Returns the text of an argument: its own, or its JSON. */
const textOf = (value: JsonValue): string => (typeof value === 'string' ? value : JSON.stringify(value));

const matchesArgument = ({ argument, matches }: PolicyRule, input: JsonValue): boolean => {
  if (argument === undefined) return true;
  const value = valueAt(input, argument);
  return value !== undefined && (matches === undefined || matchesPattern(matches, textOf(value)));
};

/** A pattern of a rule means native tools as well, so that a rule for all of them denies them. */
const matchesName = ({ tool }: PolicyRule, name: string): boolean =>
  isToolPattern(tool) ? name.startsWith(tool.slice(0, -1)) : tool === name;

const matchesCapability = ({ capability }: PolicyRule, grants: readonly string[] = []): boolean =>
  capability === undefined || grants.some((grant) => matchesPattern(capability, grant));

/** Returns the terms of an approval that a rule of the policy asks for. */
const askedBy = (agent: Pick<AgentConfig, 'approvals'>, tool: string): ApprovalRule => {
  const terms = findApprovalRule(agent, tool, undefined);
  return terms ?? { ...USUAL_TERMS, tool };
};

/**
 * Decides on a call: by the first rule of the policy that matches it, else by the approval rules of
 * the agent. A call without a rule is allowed.
 */
export const decideCall = (
  agent: Pick<AgentConfig, 'approvals' | 'policy'>,
  { tool, input, description }: PolicyCall,
): PolicyDecision => {
  const policy = agent.policy ?? [];
  const index = policy.findIndex(
    (rule) =>
      matchesName(rule, tool) && matchesCapability(rule, description?.grants) && matchesArgument(rule, input),
  );
  const found = policy[index];
  if (found?.decision === 'deny') return { decision: 'deny', rule: index + 1 };
  if (found?.decision === 'ask') return { decision: 'ask', approval: askedBy(agent, tool) };
  const approval = found ? null : findApprovalRule(agent, tool, description);
  return approval ? { decision: 'ask', approval } : { decision: 'allow' };
};
