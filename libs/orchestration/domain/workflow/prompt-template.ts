import { ESCAPE, EXPRESSION, toReference } from '@antiphon/contracts/prompt-references';
import type { RunInputs, WorkflowDefinition } from '@antiphon/contracts/agent';
import { rejected } from '@antiphon/kernel';

/** Looks up the text of a reference. Undefined leaves the expression unchanged. */
export interface TemplateValues {
  readonly input: (name: string) => string | undefined;
  readonly output: (nodeId: string) => string | undefined;
}

/** Replaces references in one pass: a model's output is never read as a template. */
export const renderPrompt = (prompt: string, { input, output }: TemplateValues): string => {
  const valueOf = (text: string): string | undefined => {
    const reference = toReference(text);
    if (reference.kind === 'input') return input(reference.name);
    return reference.kind === 'output' ? output(reference.nodeId) : undefined;
  };
  return prompt.replace(EXPRESSION, (written: string, before: string, text: string) => {
    const expression = written.slice(before.length);
    if (before === ESCAPE) return expression;
    return before.slice(ESCAPE.length) + (valueOf(text) ?? expression);
  });
};

/**
 * Returns a run's inputs with defaults filled in. Throws `RUN.UNKNOWN_INPUT`, `RUN.MISSING_INPUT`.
 */
export const resolveInputs = ({ inputs }: WorkflowDefinition, given: RunInputs): RunInputs => {
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(inputs, name));
  if (unknown !== undefined)
    throw rejected('RUN.UNKNOWN_INPUT', `the workflow declares no input "${unknown}"`);
  const values = Object.entries(inputs).map(([name, { default: fallback }]) => {
    const value = Object.hasOwn(given, name) ? given[name] : fallback;
    if (value === undefined)
      throw rejected('RUN.MISSING_INPUT', `the input "${name}" is missing, and has no default`);
    return [name, value] as const;
  });
  return Object.fromEntries(values);
};
