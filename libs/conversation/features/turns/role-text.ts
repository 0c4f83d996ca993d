/** Returns the path of the file of a role. */
export const rolePath = (role: string): string => `system/agents/${role}.md`;

const OPENING = /^\uFEFF?---[ \t]*\r?\n/;

/** Splits the file of a role into its front matter, null without one, and its prompt. */
export const splitRole = (text: string): { readonly frontMatter: string | null; readonly prompt: string } => {
  const start = OPENING.exec(text)?.[0].length ?? 0;
  const closing = /^---[ \t]*(?:\r?\n|$)/gm;
  closing.lastIndex = start;
  const end = start === 0 ? null : closing.exec(text);
  if (!end) return { frontMatter: null, prompt: text };
  return { frontMatter: text.slice(start, end.index), prompt: text.slice(closing.lastIndex).trimStart() };
};
