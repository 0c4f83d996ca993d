import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from '@typescript-eslint/parser';

const TAG = /^\s*@shows ((?:[\w.-]+ ?)+)$/;
const GROUPS = new Set(['describe', 'it', 'test']);

/** Returns the function of a call such as `it.each(cases)('title', …)`. */
const functionOf = (node) => {
  if (node.type === 'CallExpression' || node.type === 'TaggedTemplateExpression')
    return functionOf(node.callee ?? node.tag);
  return node.type === 'MemberExpression' ? functionOf(node.object) : node.name;
};

const titleOf = ({ type, expression }) => {
  if (type !== 'ExpressionStatement' || expression.type !== 'CallExpression') return undefined;
  if (!GROUPS.has(functionOf(expression))) return undefined;
  const [title] = expression.arguments;
  if (title?.type === 'TemplateLiteral') return title.quasis.map(({ value }) => value.cooked).join('…');
  return typeof title?.value === 'string' ? title.value : undefined;
};

const visit = (node, found) => {
  if (node === null || typeof node !== 'object') return;
  if (Array.isArray(node)) return node.forEach((child) => visit(child, found));
  const title = typeof node.type === 'string' ? titleOf(node) : undefined;
  if (title !== undefined) found.push({ title, line: node.loc.start.line });
  for (const [key, child] of Object.entries(node)) if (key !== 'loc' && key !== 'range') visit(child, found);
};

/** Returns the tests and groups of a spec, with the rows that the comment above each names. */
export const testsIn = (text) => {
  const { body, comments } = parse(text, { loc: true, range: true, comment: true });
  const found = [];
  visit(body, found);
  const tags = new Map(
    comments.flatMap(({ value, loc }) => {
      const [, rows] = TAG.exec(value) ?? [];
      return rows === undefined ? [] : [[loc.end.line, rows.trim().split(' ')]];
    }),
  );
  const tests = found.map(({ title, line }) => ({ title, line, rows: tags.get(line - 1) ?? [] }));
  const lines = new Set(found.map(({ line }) => line - 1));
  const lost = [...tags].filter(([line]) => !lines.has(line));
  if (lost.length > 0) throw new Error(`line ${lost[0][0]}: no test follows @shows`);
  return tests;
};

/** Returns the tests that name rows by `// @shows ROW`, by row, in the order of their files. */
export const shownTests = (root) => {
  const shown = new Map();
  const files = globSync('{apps,libs,tools,plugins,benchmarks}/**/*.spec.ts', {
    cwd: root,
    exclude: (path) => /(^|\/)(dist|node_modules)$/.test(path),
  }).sort();
  for (const file of files) {
    const text = readFileSync(join(root, file), 'utf8');
    if (!text.includes('// @shows ')) continue;
    for (const { title, rows } of testsIn(text))
      for (const row of rows) shown.set(row, [...(shown.get(row) ?? []), { file, title }]);
  }
  return shown;
};
