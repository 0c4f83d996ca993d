import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MODEL_FAILURE_REASONS } from '@antiphon/providers-domain';
import { invalid, nestsDeeperThan, type JsonObject } from '@antiphon/kernel';
import { z } from 'zod';

const delayMs = z.int().min(0).max(600_000);

const ErrorStep = z.strictObject({
  /** HTTP status of an error response. Without one, `reason` selects how the call breaks. */
  status: z.int().min(400).max(599).optional(),
  reason: z.enum(MODEL_FAILURE_REASONS).exclude(['cancelled', 'provider_error']).optional(),
  message: z.string().max(10_000).default('scripted error'),
  retryAfterMs: z.int().min(0).optional(),
});

/** One action of the model. `delayMs` passes before it. */
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
  /** Sends nothing more, until the call is cancelled or times out. */
  z.strictObject({ hang: z.literal(true) }),
]);
export type ScenarioStep = z.infer<typeof ScenarioStep>;

export const ScenarioReply = z.strictObject({
  /** Conditions that must all match. Without any, the reply always matches. */
  when: z
    .strictObject({
      /** Text that the turn's user message contains. */
      user: z.string().optional(),
      /** Number of the model call within the turn, from 1. */
      step: z.int().positive().optional(),
      model: z.string().optional(),
    })
    .default({}),
  /** Number of uses in the lifetime of the process. After that the reply no longer matches. */
  times: z.int().positive().optional(),
  play: z.array(ScenarioStep).min(1).max(10_000),
  finish: z.enum(['stop', 'tool_calls', 'length', 'content_filter', 'other']).optional(),
  /** Null: no usage is reported. Absent: counted by this provider's own tokenizer. */
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

/** Parses a scenario's JSON. A problem names the place in the file and the expected value. */
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

/** Returns the scenario for a model's name; undefined selects the built-in replies. */
export type ScenarioLookup = (model: string) => Scenario | undefined;

const toPath = (baseUrl: string, folder: string): string =>
  baseUrl.startsWith('file://') ? fileURLToPath(baseUrl) : resolve(folder, baseUrl.slice('file:'.length));

const load = (path: string): Scenario => {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    throw invalid('PROVIDER.SCENARIO_UNREADABLE', `the scenario ${path} cannot be read`, { cause });
  }
  const result = parseScenario(text);
  if (!result.ok)
    throw invalid('PROVIDER.SCENARIO_INVALID', `the scenario ${path} is wrong: ${result.problem}`);
  return result.scenario;
};

const loadFolder = (path: string): ScenarioLookup => {
  let files: string[];
  try {
    files = readdirSync(path).filter((file) => file.endsWith('.json'));
  } catch (cause) {
    throw invalid('PROVIDER.SCENARIO_UNREADABLE', `the folder of scenarios ${path} cannot be read`, {
      cause,
    });
  }
  const scenarios = new Map(files.map((file) => [basename(file, '.json'), load(join(path, file))]));
  return (model) => scenarios.get(model);
};

/**
 * Reads scenario files, once at the start. `base_url = "file:demo.json"` plays that file for every
 * model. `file:demos/`, with a slash at its end, plays `demos/<model>.json`. Relative paths start
 * at the configuration's folder.
 *
 * @param source absolute path of the configuration file, null for none
 */
export const loadScenarios = (baseUrl: string | null, source: string | null): ScenarioLookup => {
  if (baseUrl === null) return () => undefined;
  if (!baseUrl.startsWith('file:'))
    throw invalid(
      'PROVIDER.BASE_URL_INVALID',
      `a scripted provider's base_url is a file: URL, not ${baseUrl}`,
    );
  const path = toPath(baseUrl, source === null ? process.cwd() : dirname(source));
  if (baseUrl.endsWith('/')) return loadFolder(path);
  const scenario = load(path);
  return () => scenario;
};
