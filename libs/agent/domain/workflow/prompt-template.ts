/** What stands for a text of the run. */
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

/** Everything that a prompt refers to, in its order. */
export const referencesIn = (prompt: string): TemplateReference[] =>
  [...prompt.matchAll(EXPRESSION)].map(([, text = '']) => toReference(text.trim()));

/** The texts that references stand for; undefined leaves the expression as it is written. */
export interface TemplateValues {
  readonly input: (name: string) => string | undefined;
  readonly output: (nodeId: string) => string | undefined;
}

/** Puts the texts in, in one pass: what a model wrote is never read as a template again. */
export const renderPrompt = (prompt: string, { input, output }: TemplateValues): string =>
  prompt.replace(EXPRESSION, (written: string, text: string) => {
    const reference = toReference(text.trim());
    if (reference.kind === 'input') return input(reference.name) ?? written;
    return reference.kind === 'output' ? (output(reference.nodeId) ?? written) : written;
  });
