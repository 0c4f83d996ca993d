import type { ModelUsage } from '@antiphon/agent-domain';
import { countOf, fieldsOf } from '../transport/fields.js';

const INPUT_FIELDS = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens'] as const;

/** Reads Anthropic's cumulative usage: each field's last value wins, and one that is no count spoils the whole. */
export interface UsageReader {
  /** `isFinal` for a `message_delta` or a whole message: only these know the output. */
  read(value: unknown, isFinal: boolean): void;
  result(): ModelUsage | null;
}

export const createUsageReader = (): UsageReader => {
  const last = new Map<string, number | null>();
  const note = (fields: Readonly<Record<string, unknown>>, name: string): void => {
    const value = fields[name];
    if (value !== undefined && value !== null) last.set(name, countOf(value));
  };
  return {
    read: (value, isFinal) => {
      const fields = fieldsOf(value);
      if (fields === undefined) return;
      for (const name of INPUT_FIELDS) note(fields, name);
      if (isFinal) note(fields, 'output_tokens');
    },
    result: () => {
      const outputTokens = last.get('output_tokens');
      const inputs = INPUT_FIELDS.map((name) => last.get(name));
      if (outputTokens === undefined || outputTokens === null) return null;
      if (inputs[0] === undefined || inputs.includes(null)) return null;
      return { inputTokens: inputs.reduce<number>((sum, count) => sum + (count ?? 0), 0), outputTokens };
    },
  };
};
