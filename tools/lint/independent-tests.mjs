/**
 * Refuses a variable that one test assigns and another test reads: the second test fails without
 * the first. A variable that `beforeAll`, `beforeEach` or the reading test itself assigns is free.
 */
const TESTS = new Set(['it', 'test']);
const BEFORE = new Set(['beforeAll', 'beforeEach']);

/** Returns the name of the called function: `it` for `it(…)`, `it.each(…)(…)` and `it.skip(…)`. */
const calleeName = (node) => {
  for (let at = node; at; at = at.callee ?? at.tag ?? at.object) if (at.type === 'Identifier') return at.name;
  return undefined;
};

const isFunction = (node) => node?.type === 'ArrowFunctionExpression' || node?.type === 'FunctionExpression';

/** Returns the callback of the test, or of a hook before it, that a node stands in. */
const callbackAround = (node) => {
  for (let at = node; at.parent; at = at.parent) {
    if (!isFunction(at) || at.parent.type !== 'CallExpression' || at.parent.callee === at) continue;
    const name = calleeName(at.parent.callee);
    if (TESTS.has(name)) return { body: at, isTest: true };
    if (BEFORE.has(name)) return { body: at, isTest: false };
  }
  return undefined;
};

/** Returns a read of the variable in a test other than one that assigns it, or undefined. */
const foreignRead = (variable) => {
  const uses = variable.references.map((reference) => ({
    reference,
    around: callbackAround(reference.identifier),
  }));
  const writes = uses.filter(({ reference }) => reference.isWrite() && !reference.init);
  if (writes.some(({ around }) => around?.isTest === false)) return undefined;
  const writers = new Set(writes.filter(({ around }) => around?.isTest).map(({ around }) => around.body));
  if (writers.size === 0) return undefined;
  return uses.find(
    ({ reference, around }) => reference.isRead() && around?.isTest && !writers.has(around.body),
  )?.reference;
};

/** @type {import('eslint').Rule.RuleModule} */
export const independentTests = {
  meta: {
    type: 'problem',
    schema: [],
    messages: { handed: '{{name}} is assigned by another test; prepare it in beforeAll or in this test' },
  },
  create(context) {
    const check = (scope) => {
      for (const variable of scope.variables) {
        const read = foreignRead(variable);
        if (read)
          context.report({ node: read.identifier, messageId: 'handed', data: { name: variable.name } });
      }
      for (const child of scope.childScopes) check(child);
    };
    return { 'Program:exit': (node) => check(context.sourceCode.getScope(node)) };
  },
};
