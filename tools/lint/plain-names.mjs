/**
 * Names that a newcomer's search does not find (CONTRIBUTING.md, "Names"): metaphors, indefinite
 * persons, and names that begin with a bare conjunction or preposition. Wire names are strings, so
 * they are not looked at.
 */
const BANNED_WORDS = new Map([
  ['kick', 'wake or start'],
  ['bury', 'handle … exit'],
  ['gift', 'host functions'],
  ['gifts', 'host functions'],
  ['desk', 'the thing itself'],
  ['blow', 'fault'],
  ['hands', 'in flight'],
  ['wall', 'isolation'],
  ['whoever', 'the actor'],
  ['somebody', 'the actor'],
  ['nobody', 'the actor'],
  ['anybody', 'the actor'],
  ['elsewhere', 'contended, or fallback'],
  ['anew', 'again'],
  ['mortal', 'killable'],
  ['passed', 'skipped'],
  ['beside', 'next to'],
]);
const BARE_OPENINGS = new Set(['unless', 'or', 'until', 'of', 'whose', 'though']);

const wordsOf = (name) => name.split(/(?=[A-Z])|[_\-.\d]+/).map((word) => word.toLowerCase());

/** Returns the reason why a name is not allowed, or undefined. */
export const problemWithName = (name) => {
  const words = wordsOf(name);
  if (words.length > 1 && BARE_OPENINGS.has(words[0])) return `it begins with the bare word "${words[0]}"`;
  if (words[0] === 'wall' && words[1] === 'clock') return undefined;
  const banned = words.find((word) => BANNED_WORDS.has(word));
  return banned && `write ${BANNED_WORDS.get(banned)} instead of "${banned}"`;
};

/** @type {import('eslint').Rule.RuleModule} */
export const plainNames = {
  meta: {
    type: 'suggestion',
    schema: [],
    messages: { name: 'the name {{name}} is not plain: {{problem}}' },
  },
  create(context) {
    const check = (node) => {
      if (node?.type !== 'Identifier') return;
      const problem = problemWithName(node.name);
      if (problem) context.report({ node, messageId: 'name', data: { name: node.name, problem } });
    };
    const checkFile = (node) => {
      const name = context.filename.split(/[\\/]/).at(-1);
      const problem = problemWithName(name);
      if (problem) context.report({ node, messageId: 'name', data: { name, problem } });
    };
    return {
      Program: checkFile,
      'VariableDeclarator, FunctionDeclaration, ClassDeclaration': (node) => check(node.id),
      'TSInterfaceDeclaration, TSTypeAliasDeclaration, TSEnumDeclaration': (node) => check(node.id),
      'TSPropertySignature, TSMethodSignature, MethodDefinition, PropertyDefinition': (node) =>
        !node.computed && check(node.key),
      ':function > Identifier.params': check,
    };
  },
};
