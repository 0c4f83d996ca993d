/** Expression in a prompt that stands for a text of the run. */
export type TemplateReference =
  | { readonly kind: 'input'; readonly name: string }
  | { readonly kind: 'output'; readonly nodeId: string }
  | { readonly kind: 'unknown'; readonly text: string };

/**
 * An expression with the backslashes before it. One backslash makes it plain text, without the
 * backslash; two are one backslash and an expression.
 */
export const EXPRESSION = /(\\{0,2})\{\{([^{}]*)\}\}/g;
/** Text before an expression that makes it plain text. */
export const ESCAPE = '\\';
const INPUT = /^inputs\.([A-Za-z][A-Za-z0-9_-]*)$/;
const OUTPUT = /^nodes\.([A-Za-z][A-Za-z0-9_-]*)\.output$/;

/** Returns the reference that the text between two pairs of braces stands for. */
export const toReference = (between: string): TemplateReference => {
  const text = between.trim();
  const name = INPUT.exec(text)?.[1];
  if (name !== undefined) return { kind: 'input', name };
  const nodeId = OUTPUT.exec(text)?.[1];
  return nodeId === undefined ? { kind: 'unknown', text } : { kind: 'output', nodeId };
};

/** Returns all references of a prompt, in order. */
export const referencesIn = (prompt: string): TemplateReference[] =>
  [...prompt.matchAll(EXPRESSION)].flatMap(([, before, text = '']) =>
    before === ESCAPE ? [] : [toReference(text)],
  );
