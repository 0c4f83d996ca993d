import { getStaticValue } from '@eslint-community/eslint-utils';
import { RegExpParser, visitRegExpAST } from '@eslint-community/regexpp';
import { Chars, getConsumedChars, isPotentiallyEmpty } from 'regexp-ast-analysis';
import { analyse } from 'scslre';

/**
 * Refuses a regular expression whose time is not linear in any text. It backtracks, or its repeat
 * can begin anywhere and then fail. The analysis is scslre's, on a stricter pattern:
 *
 * - A count of at least `LARGE` is a repeat without a bound, and so is a count within another one.
 * - `\b` keeps no start of a match away.
 *
 * `moveAfterPrefix` finds what scslre does not: a repeat behind a text that it can repeat.
 */
const LARGE = 100;
const parser = new RegExpParser({ ecmaVersion: 2025 });

/** Returns whether a quantifier lies within another one that repeats. */
const isNested = (node) => {
  for (let at = node.parent; at; at = at.parent)
    if (at.type === 'Quantifier' && at.max > 1 && at.max !== at.min) return true;
  return false;
};

const isVariable = ({ min, max }) => max !== min;

/** Returns the pattern with the changes above, as text. */
const strict = (pattern, flags) => {
  const changes = [];
  visitRegExpAST(parser.parsePattern(pattern, 0, pattern.length, unicodeOf(flags)), {
    onQuantifierEnter: (node) => {
      const inner =
        node.max > 1 && isVariable(node) && (node.max >= LARGE || isNested(node) || hasNested(node));
      if (!inner || node.max === Infinity) return;
      const mark = `{${node.min},}${node.greedy ? '' : '?'}`;
      changes.push([node.element.end, node.end, mark]);
    },
    onAssertionEnter: (node) => {
      if (node.kind === 'word') changes.push([node.start, node.end, '']);
    },
  });
  changes.sort((a, b) => b[0] - a[0]);
  return changes.reduce((text, [start, end, mark]) => text.slice(0, start) + mark + text.slice(end), pattern);
};

const hasNested = (node) => {
  let found = false;
  visitRegExpAST(node.element, {
    onQuantifierEnter: (inner) => {
      found ||= inner.max > 1 && isVariable(inner);
    },
  });
  return found;
};

const unicodeOf = (flags) => ({ unicode: flags.includes('u'), unicodeSets: flags.includes('v') });

/** Returns whether the elements can match the empty text where the repeat of a set has ended. */
const mayBeEmpty = (elements, set, flags) =>
  elements.every((element) => {
    if (element.type === 'Assertion' && element.kind === 'end') return set.isAll;
    if (element.type === 'Group' || element.type === 'CapturingGroup')
      return element.alternatives.some((one) => mayBeEmpty(one.elements, set, flags));
    return isPotentiallyEmpty(element, flags);
  });

/** Returns the characters that a negative lookbehind at the start forbids before a match. */
const forbiddenBefore = ([first], flags) =>
  first?.type === 'Assertion' && first.kind === 'lookbehind' && first.negate
    ? first.alternatives.map((one) => getConsumedChars(one, flags).chars)
    : [];

/**
 * Finds a repeat that can also match each text before it, and that something must follow. In a text
 * that repeats the start, the search begins at each of them.
 */
const moveAfterPrefix = (alternative, flags) => {
  const [first] = alternative.elements;
  const isAtStart = first?.type === 'Assertion' && first.kind === 'start';
  if (isAtStart && !flags.multiline) return null;
  const forbidden = forbiddenBefore(alternative.elements, flags);
  const walk = (elements, before, after) => {
    let prefix = before;
    for (const [index, element] of elements.entries()) {
      const rest = [...elements.slice(index + 1), ...after];
      const set = getConsumedChars(element, flags).chars;
      if (element.type === 'Quantifier' && element.max === Infinity) {
        const isGuarded = forbidden.some((one) => one.isSupersetOf(set));
        const isMove = prefix && !isGuarded && set.isSupersetOf(prefix) && !mayBeEmpty(rest, set, flags);
        if (isMove) return element;
      } else if (element.type === 'Group' || element.type === 'CapturingGroup')
        for (const inner of element.alternatives) {
          const found = walk(inner.elements, prefix, rest);
          if (found) return found;
        }
      if (!set.isEmpty) prefix = prefix ? prefix.union(set) : set;
    }
    return null;
  };
  // A line begins after a line feed, which the repeat has to match as well.
  return walk(alternative.elements, isAtStart ? lineFeed(flags) : null, []);
};

const lineFeed = (flags) => Chars.empty(flags).union([{ min: 10, max: 10 }]);

const verdicts = new Map();

/** Returns why an expression is not linear; undefined if it is. */
const problemOf = (pattern, flags) => {
  const key = `/${pattern}/${flags}`;
  if (!verdicts.has(key)) verdicts.set(key, analysed(pattern, flags));
  return verdicts.get(key);
};

const analysed = (pattern, flags) => {
  const source = strict(pattern, flags);
  const [report] = analyse({ source, flags }, { maxReports: 1 }).reports;
  if (report) {
    const where = report.quant ?? report.startQuant;
    const name = { Trade: 'trades characters with another repeat', Self: 'repeats itself' }[report.type];
    return `\`${where.raw}\` ${name ?? 'can begin anywhere and then fail'}`;
  }
  const parsed = parser.parsePattern(source, 0, source.length, unicodeOf(flags));
  const ast = parser.parseFlags(flags);
  for (const alternative of parsed.alternatives) {
    const found = moveAfterPrefix(alternative, ast);
    if (found) return `\`${found.raw}\` can also match the text before it`;
  }
  return undefined;
};

const isRegExpCall = (node) => node.callee.type === 'Identifier' && node.callee.name === 'RegExp';

/** @type {import('eslint').Rule.RuleModule} */
export const linearRegexp = {
  meta: {
    type: 'problem',
    schema: [],
    messages: {
      slow: 'the time of this expression is not linear in its text: {{problem}}; write a scan, or begin it by a lookbehind',
      dynamic: 'an expression that is not constant has no known time; search it with RE2 in a thread',
    },
  },
  create(context) {
    const check = (node, pattern, flags) => {
      const problem = problemOf(pattern, flags);
      if (problem) context.report({ node, messageId: 'slow', data: { problem } });
    };
    const checkCall = (node) => {
      if (!isRegExpCall(node)) return;
      const value = getStaticValue(node, context.sourceCode.getScope(node))?.value;
      if (value instanceof RegExp) check(node, value.source, value.flags);
      else context.report({ node, messageId: 'dynamic' });
    };
    return {
      'Literal[regex]': (node) => check(node, node.regex.pattern, node.regex.flags),
      NewExpression: checkCall,
      CallExpression: checkCall,
    };
  },
};
