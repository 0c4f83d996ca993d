/** Limits the lines of a function from its first to its last, the functions within it included. */
const FUNCTIONS = 'FunctionDeclaration, FunctionExpression, ArrowFunctionExpression';

/** @type {import('eslint').Rule.RuleModule} */
export const functionLength = {
  meta: {
    type: 'suggestion',
    schema: [{ type: 'object', properties: { max: { type: 'integer' } }, required: ['max'] }],
    messages: { long: 'this function has {{lines}} lines, {{max}} at most' },
  },
  create(context) {
    const { max } = context.options[0];
    return {
      [FUNCTIONS](node) {
        const lines = node.loc.end.line - node.loc.start.line + 1;
        if (lines > max) context.report({ node, messageId: 'long', data: { lines, max } });
      },
    };
  },
};
