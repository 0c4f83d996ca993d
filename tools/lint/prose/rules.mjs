/**
 * The prose rules that no published textlint rule has. Each takes the paragraphs of Markdown and of
 * code comments (`code-comments.mjs`), where a paragraph's `kind` is `doc`, `comment` or `string`,
 * and undefined in Markdown.
 */

const MAX_WORDS = 25;
const MAX_WIDTH = 100;

/** Returns a node's text with each code span, link and image as one word. */
const plainText = (node) => {
  if (node.type === 'Code' || node.type === 'Image' || node.type === 'Html') return 'Code';
  if (node.children) return node.children.map(plainText).join('');
  return node.value ?? '';
};

/**
 * Splits prose where a sentence ends: a full stop, question or exclamation mark before a capital or
 * an opening mark.
 */
const sentencesOf = (text) =>
  text
    .replace(/`[^`]*`/g, 'Code')
    .replace(/\s+/g, ' ')
    .trim()
    .split(/(?<=[.!?]["')]?)\s+(?=["'(]?[A-Z0-9])/);

/**
 * Makes a rule that looks at each sentence; `problemOf` returns a message, or undefined where all
 * is well.
 */
const sentenceRule =
  (problemOf, { kinds = ['doc', 'comment', undefined] } = {}) =>
  (context) => {
    const { Syntax, RuleError, report } = context;
    return {
      [Syntax.Paragraph](node) {
        if (!kinds.includes(node.kind)) return;
        for (const sentence of sentencesOf(plainText(node))) {
          const problem = problemOf(sentence, node);
          if (problem) report(node, new RuleError(`${problem}: "${sentence.slice(0, 90)}"`));
        }
      },
    };
  };

const wordsOf = (sentence) => sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;

export const sentenceLength = sentenceRule((sentence) => {
  const words = wordsOf(sentence);
  return words > MAX_WORDS ? `a sentence has ${words} words, ${MAX_WORDS} at most` : undefined;
});

export const sentencePunctuation = sentenceRule((sentence) => {
  const marks = sentence.match(/[;:](?=\s)/g)?.length ?? 0;
  return marks > 1 ? 'a sentence has one semicolon or colon at most' : undefined;
});

export const clauseSubject = sentenceRule((sentence) =>
  /^(What|Whatever|Whoever|Who)\s(?![^.!?]*\?)/.test(sentence)
    ? 'a sentence begins with its subject, not with a "what" or "who" clause'
    : undefined,
);

export const docCommentOpening = (context) => {
  const { Syntax, RuleError, report } = context;
  return {
    [Syntax.Paragraph](node) {
      if (
        node.kind !== 'doc' ||
        !node.opens ||
        !/^(What|Whoever|Who|That|Answers|Answer)\b/.test(node.raw.trim())
      )
        return;
      report(
        node,
        new RuleError('a doc comment begins with a verb or a noun: Returns, Appends, Maximum size of …'),
      );
    },
  };
};

/**
 * Reports comment lines that are wider than the limit; a line without a space (an address) cannot
 * be broken.
 */
export const commentWidth = (context) => {
  const { Syntax, RuleError, report, locator } = context;
  return {
    [Syntax.Paragraph](node) {
      if (node.kind !== 'doc' && node.kind !== 'comment') return;
      let offset = 0;
      for (const [index, line] of node.raw.split('\n').entries()) {
        const width = line.trimEnd().length + (index === 0 ? node.loc.start.column : 0);
        if (width > MAX_WIDTH && line.trim().includes(' '))
          report(
            node,
            new RuleError(`a comment line has ${width} characters, ${MAX_WIDTH} at most`, {
              padding: locator.at(offset),
            }),
          );
        offset += line.length + 1;
      }
    },
  };
};
