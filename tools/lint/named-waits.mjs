/**
 * Refuses a sleep of a fixed time in specs and their helpers. A spec waits for a fact with `until`.
 * Time that is its input passes with `letTimePass`. Time before an assertion that something did not
 * happen passes with `giveTimeToFail` (`libs/testing/waits.ts`). A helper may poll in its own loop.
 */
const LOOPS = new Set([
  'WhileStatement',
  'DoWhileStatement',
  'ForStatement',
  'ForOfStatement',
  'ForInStatement',
]);
const SLEEPS = { '@antiphon/kernel': 'sleep', 'node:timers/promises': 'setTimeout' };

const isFunction = ({ type }) => /Function/.test(type);

const isInLoop = (node) => {
  for (let at = node.parent; at && !isFunction(at); at = at.parent) if (LOOPS.has(at.type)) return true;
  return false;
};

/** Returns the promise of `new Promise((resolve) => setTimeout(resolve, ms))`, else undefined. */
const promiseOfTimer = (node) => {
  const [first] = node.arguments;
  if (node.callee.name !== 'setTimeout' || first?.type !== 'Identifier') return undefined;
  let at = node.parent;
  while (at && !isFunction(at)) at = at.parent;
  const isExecutor = at?.parent?.type === 'NewExpression' && at.parent.callee.name === 'Promise';
  return isExecutor && at.params[0]?.name === first.name ? at.parent : undefined;
};

/** @type {import('eslint').Rule.RuleModule} */
export const namedWaits = {
  meta: {
    type: 'suggestion',
    schema: [],
    messages: {
      fixed:
        'wait for the fact with `until`; time that is the input of a test passes with `letTimePass`, ' +
        'and before an absence is asserted with `giveTimeToFail` (@antiphon/testing/waits)',
    },
  },
  create(context) {
    const isSpec = context.filename.endsWith('.spec.ts');
    const sleeps = new Set();
    return {
      ImportDeclaration(node) {
        for (const { imported, local } of node.specifiers)
          if (imported && SLEEPS[node.source.value] === imported.name) sleeps.add(local.name);
      },
      CallExpression(node) {
        const waiting = sleeps.has(node.callee.name) ? node : promiseOfTimer(node);
        if (waiting && (isSpec || !isInLoop(waiting))) context.report({ node, messageId: 'fixed' });
      },
    };
  },
};
