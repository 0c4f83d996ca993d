import type { DeclaredToolPolicy, ToolPolicyResult } from '@antiphon/contracts/sandbox';
import { nestsDeeperThan, toStorable, toStorableJson } from '@antiphon/kernel';
import type { JsonObject, JsonValue } from '@antiphon/kernel';

/** What a tool says of itself; its name is the operator's, from the configuration. */
export interface PluginDescription {
  readonly description: string;
  /** JSON Schema of an object. */
  readonly inputSchema: JsonObject;
  readonly idempotent: boolean;
  /** How it wants its calls to be made; the operator may allow less. */
  readonly declares: DeclaredToolPolicy;
}

export type DescriptionResult =
  | { readonly ok: true; readonly description: PluginDescription }
  | { readonly ok: false; readonly reason: string };

export const MAX_DESCRIPTION_LENGTH = 4_000;
const MAX_DESCRIBE_BYTES = 64 * 1024;
/** A reason goes to logs and clients, and may hold the plug-in's own words. */
const MAX_REASON_LENGTH = 200;

/** Checks `timeout_ms` and `retry` of what a plug-in answered. */
export type ReadPolicy = (answer: JsonObject) => ToolPolicyResult;

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const bad = (reason: string): DescriptionResult => ({ ok: false, reason: `describe() ${reason}` });

const parseObject = (text: string): JsonObject | null => {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null; // the caller says so in its own words
  }
};

/** A tool without `describe()`: the model is told its name and that it takes an object. */
export const undescribed = (name: string): PluginDescription => ({
  description: `The plug-in ${name}, which does not describe itself.`,
  inputSchema: { type: 'object' },
  idempotent: false,
  declares: {},
});

/** Only a tool that may be called twice is ever tried again: a policy that says otherwise is a mistake, or a trap. */
const contradicts = (idempotent: boolean, { retry }: DeclaredToolPolicy): boolean =>
  !idempotent && retry !== undefined && (retry.maxAttempts > 1 || retry.onTimeout);

const describedBy = (object: JsonObject, readPolicy: ReadPolicy): DescriptionResult => {
  const { description, input_schema: inputSchema = { type: 'object' }, idempotent = false } = object;
  if (typeof description !== 'string' || description === '' || description.length > MAX_DESCRIPTION_LENGTH)
    return bad(`must answer a "description" of 1 to ${MAX_DESCRIPTION_LENGTH} characters`);
  if (!isObject(inputSchema) || inputSchema['type'] !== 'object')
    return bad('must answer an "input_schema" that is a JSON Schema of type "object"');
  if (typeof idempotent !== 'boolean') return bad('must answer true or false for "idempotent"');
  const declared = readPolicy(object);
  if (!declared.ok)
    return bad(`declares what cannot be kept: ${toStorable(declared.reason.slice(0, MAX_REASON_LENGTH))}`);
  if (contradicts(idempotent, declared.policy))
    return bad(
      'declares "retry" without "idempotent": true; only a tool that may be called twice is tried again',
    );
  const schema = toStorableJson(inputSchema satisfies JsonValue) as JsonObject;
  return {
    ok: true,
    description: {
      ...{ description: toStorable(description), inputSchema: schema, idempotent },
      declares: declared.policy,
    },
  };
};

/**
 * Reads the JSON that `describe()` put out: `description`, `input_schema` and `idempotent` (default false:
 * only a tool that says so may be called again when its outcome was lost), and how it wants its calls to be made:
 * `timeout_ms` and `retry`, which is refused for a tool that is not idempotent. Other keys are ignored. `readPolicy` checks those two.
 */
export const parseDescription = (output: Uint8Array, readPolicy: ReadPolicy): DescriptionResult => {
  if (output.length > MAX_DESCRIBE_BYTES)
    return bad(`answered ${output.length} bytes, at most ${MAX_DESCRIBE_BYTES}`);
  const text = new TextDecoder().decode(output);
  if (nestsDeeperThan(text)) return bad('answered JSON that nests too deeply');
  const object = parseObject(text);
  if (object === null) return bad('did not answer a JSON object');
  return describedBy(object, readPolicy);
};
