import type { DeclaredToolPolicy, ToolPolicyResult } from '@antiphon/contracts/sandbox';
import { findJsonExcess, toStorable, toStorableJson } from '@antiphon/kernel';
import type { JsonObject, JsonValue } from '@antiphon/kernel';

/** Description that a tool gives of itself. Its name comes from the configuration. */
export interface PluginDescription {
  readonly description: string;
  /** JSON Schema of type `object`. */
  readonly inputSchema: JsonObject;
  readonly idempotent: boolean;
  /** Timeout and retries that the tool declares; the operator may allow less. */
  readonly declares: DeclaredToolPolicy;
}

export type DescriptionResult =
  | { readonly ok: true; readonly description: PluginDescription }
  | { readonly ok: false; readonly reason: string };

export const MAX_DESCRIPTION_LENGTH = 4_000;
const MAX_DESCRIBE_BYTES = 64 * 1024;
/** Bounds a reason, which goes to logs and clients and may contain text of the plug-in. */
const MAX_REASON_LENGTH = 200;

/** Parses `timeout_ms` and `retry` of a plug-in's `describe()` output. */
export type ParsePolicy = (output: JsonObject) => ToolPolicyResult;

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const refuse = (reason: string): DescriptionResult => ({ ok: false, reason: `describe() ${reason}` });

const parseObject = (text: string): JsonObject | null => {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null; // the caller reports it
  }
};

/** Returns the description of a tool without `describe()`: its name, and an object as input. */
export const defaultDescription = (name: string): PluginDescription => ({
  description: `The plug-in ${name}, which does not describe itself.`,
  inputSchema: { type: 'object' },
  idempotent: false,
  declares: {},
});

/** Returns whether a policy asks for retries of a tool that is not idempotent. */
const retriesUnsafely = (idempotent: boolean, { retry }: DeclaredToolPolicy): boolean =>
  !idempotent && retry !== undefined && (retry.maxAttempts > 1 || retry.onTimeout);

const parseFields = (object: JsonObject, parsePolicy: ParsePolicy): DescriptionResult => {
  const { description, input_schema: inputSchema = { type: 'object' }, idempotent = false } = object;
  if (typeof description !== 'string' || description === '' || description.length > MAX_DESCRIPTION_LENGTH)
    return refuse(`must return a "description" of 1 to ${MAX_DESCRIPTION_LENGTH} characters`);
  if (!isObject(inputSchema) || inputSchema['type'] !== 'object')
    return refuse('must return an "input_schema" that is a JSON Schema of type "object"');
  if (typeof idempotent !== 'boolean') return refuse('must return true or false for "idempotent"');
  const declared = parsePolicy(object);
  if (!declared.ok)
    return refuse(`declares an invalid policy: ${toStorable(declared.reason.slice(0, MAX_REASON_LENGTH))}`);
  if (retriesUnsafely(idempotent, declared.policy))
    return refuse('declares "retry" without "idempotent": true; only an idempotent tool is retried');
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
 * Parses the JSON that `describe()` returned: `description`, `input_schema`, `idempotent`,
 * `timeout_ms` and `retry`. Ignores other keys. `idempotent` defaults to false: only an idempotent
 * tool may be called again when its outcome was lost. `retry` is refused for any other tool.
 */
export const parseDescription = (output: Uint8Array, parsePolicy: ParsePolicy): DescriptionResult => {
  if (output.length > MAX_DESCRIBE_BYTES)
    return refuse(`returned ${output.length} bytes, at most ${MAX_DESCRIBE_BYTES}`);
  const text = new TextDecoder().decode(output);
  const excess = findJsonExcess(text);
  if (excess !== null) return refuse(`returned JSON that ${excess}`);
  const object = parseObject(text);
  if (object === null) return refuse('did not answer a JSON object');
  return parseFields(object, parsePolicy);
};
