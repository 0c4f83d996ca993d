import type { RunInputs, WorkflowDefinition } from '@antiphon/contracts/agent';
import { rejected } from '@antiphon/kernel';

/** Expression in a prompt that stands for a text of the run. */
export type TemplateReference =
  | { readonly kind: 'input'; readonly name: string }
  | { readonly kind: 'output'; readonly nodeId: string }
  | { readonly kind: 'unknown'; readonly text: string };

const EXPRESSION = /\{\{([^{}]*)\}\}/g;
const INPUT = /^inputs\.([A-Za-z][A-Za-z0-9_-]*)$/;
const OUTPUT = /^nodes\.([A-Za-z][A-Za-z0-9_-]*)\.output$/;

const toReference = (text: string): TemplateReference => {
  const name = INPUT.exec(text)?.[1];
  if (name !== undefined) return { kind: 'input', name };
  const nodeId = OUTPUT.exec(text)?.[1];
  return nodeId === undefined ? { kind: 'unknown', text } : { kind: 'output', nodeId };
};

/** Returns all references of a prompt, in order. */
export const referencesIn = (prompt: string): TemplateReference[] =>
  [...prompt.matchAll(EXPRESSION)].map(([, text = '']) => toReference(text.trim()));

/** Looks up the text of a reference. Undefined leaves the expression unchanged. */
export interface TemplateValues {
  readonly input: (name: string) => string | undefined;
  readonly output: (nodeId: string) => string | undefined;
}

/** Replaces references in one pass: a model's output is never read as a template. */
export const renderPrompt = (prompt: string, { input, output }: TemplateValues): string =>
  prompt.replace(EXPRESSION, (written: string, text: string) => {
    const reference = toReference(text.trim());
    if (reference.kind === 'input') return input(reference.name) ?? written;
    return reference.kind === 'output' ? (output(reference.nodeId) ?? written) : written;
  });

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
