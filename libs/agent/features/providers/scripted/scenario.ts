import { MODEL_FAILURE_REASONS } from '@antiphon/agent-domain';
import { nestsDeeperThan, type JsonObject } from '@antiphon/kernel';
import { z } from 'zod';

const delayMs = z.int().min(0).max(600_000);

const ErrorStep = z.strictObject({
  /** An HTTP status makes it the provider's own answer; without one, `reason` says how the call breaks. */
  status: z.int().min(400).max(599).optional(),
  reason: z.enum(MODEL_FAILURE_REASONS).exclude(['cancelled', 'provider_error']).optional(),
  message: z.string().max(10_000).default('scripted error'),
  retryAfterMs: z.int().min(0).optional(),
});

/** One thing that the model does; `delayMs` beside it is waited for first. */
export const ScenarioStep = z.union([
  z.strictObject({ text: z.string(), delayMs: delayMs.optional() }),
  z.strictObject({ thought: z.string(), delayMs: delayMs.optional() }),
  z.strictObject({
    tool: z.strictObject({
      name: z.string().min(1),
      input: z
        .record(z.string(), z.json())
        .default({})
        .transform((input): JsonObject => input),
      id: z.string().optional(),
    }),
    delayMs: delayMs.optional(),
  }),
  z.strictObject({ error: ErrorStep, delayMs: delayMs.optional() }),
  z.strictObject({ delayMs }),
  /** Says nothing more, until the call is cancelled or its clock runs out. */
  z.strictObject({ hang: z.literal(true) }),
]);
export type ScenarioStep = z.infer<typeof ScenarioStep>;

export const ScenarioReply = z.strictObject({
  /** All that is given must hold; nothing given always holds. */
  when: z
    .strictObject({
      /** A part of the turn's user message. */
      user: z.string().optional(),
      /** The model call within the turn, from 1. */
      step: z.int().positive().optional(),
      model: z.string().optional(),
    })
    .default({}),
  /** Used so many times in the life of the process, then passed over. */
  times: z.int().positive().optional(),
  play: z.array(ScenarioStep).min(1).max(10_000),
  finish: z.enum(['stop', 'tool_calls', 'length', 'content_filter', 'other']).optional(),
  /** Null: the provider does not say. Absent: counted as everywhere in this provider. */
  usage: z
    .strictObject({ inputTokens: z.int().nonnegative(), outputTokens: z.int().nonnegative() })
    .nullable()
    .optional(),
});
export type ScenarioReply = z.infer<typeof ScenarioReply>;

export const Scenario = z.strictObject({
  version: z.literal(1),
  replies: z.array(ScenarioReply).min(1).max(1_000),
});
export type Scenario = z.infer<typeof Scenario>;

export type ScenarioResult =
  { readonly ok: true; readonly scenario: Scenario } | { readonly ok: false; readonly problem: string };

/** Reads a scenario's JSON; the problem names the place in the file and what was expected there. */
export const parseScenario = (text: string): ScenarioResult => {
  if (nestsDeeperThan(text)) return { ok: false, problem: 'nests deeper than 64 levels' };
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return { ok: false, problem: 'is not JSON' };
  }
  const parsed = Scenario.safeParse(json);
  if (parsed.success) return { ok: true, scenario: parsed.data };
  const [issue] = parsed.error.issues;
  return {
    ok: false,
    problem: `${issue?.path.join('.') || 'the file'}: ${issue?.message ?? 'is not a scenario'}`,
  };
};
