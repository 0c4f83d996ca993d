/**
 * A function's own lines: its span less the functions of several lines within it, so that a factory
 * which only holds small functions is as good as the functions that it holds.
 */
const FUNCTIONS = 'FunctionDeclaration, FunctionExpression, ArrowFunctionExpression';

const spanOf = (node) => node.loc.end.line - node.loc.start.line + 1;

/** @type {import('eslint').Rule.RuleModule} */
export const functionLength = {
  meta: {
    type: 'suggestion',
    schema: [{ type: 'object', properties: { max: { type: 'integer' } }, required: ['max'] }],
    messages: { long: 'this function has {{lines}} lines of its own, {{max}} at most' },
  },
  create(context) {
    const { max } = context.options[0];
    const open = [];
    return {
      [FUNCTIONS]: () => open.push(0),
      [`:matches(${FUNCTIONS}):exit`](node) {
        const span = spanOf(node);
        const lines = span - open.pop();
        if (open.length > 0 && span > 1) open[open.length - 1] += span;
        if (lines > max) context.report({ node, messageId: 'long', data: { lines, max } });
      },
    };
  },
};
