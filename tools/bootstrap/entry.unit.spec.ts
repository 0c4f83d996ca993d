import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';

const ENTRY_FILES = ['start.cjs', 'stop.cjs', 'test.cjs', 'entry.cjs'];

/** Returns the kinds of syntax in a file that ES5 lacks. */
const modernKinds = (file: string): string[] => {
  const text = readFileSync(join(import.meta.dirname, file), 'utf8');
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ESNext, true, ts.ScriptKind.JS);
  const modern = new Set([
    ts.SyntaxKind.ArrowFunction,
    ts.SyntaxKind.TemplateExpression,
    ts.SyntaxKind.NoSubstitutionTemplateLiteral,
    ts.SyntaxKind.ImportKeyword,
    ts.SyntaxKind.ClassDeclaration,
    ts.SyntaxKind.SpreadElement,
    ts.SyntaxKind.ObjectBindingPattern,
    ts.SyntaxKind.ArrayBindingPattern,
    ts.SyntaxKind.ShorthandPropertyAssignment,
    ts.SyntaxKind.AwaitExpression,
    ts.SyntaxKind.ForOfStatement,
  ]);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (modern.has(node.kind)) found.push(ts.SyntaxKind[node.kind]);
    if (ts.isVariableDeclarationList(node) && (node.flags & ts.NodeFlags.BlockScoped) !== 0)
      found.push('let or const');
    if (ts.isCallExpression(node) && node.arguments.hasTrailingComma)
      found.push('comma after the last argument');
    if (ts.isFunctionLike(node) && node.parameters.hasTrailingComma)
      found.push('comma after the last parameter');
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
};

describe('the first file that runs', () => {
  it.each(ENTRY_FILES)('%s contains only ES5 syntax', (file) => {
    expect(modernKinds(file)).toEqual([]);
  });
});
