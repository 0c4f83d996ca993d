import { parse } from '@typescript-eslint/typescript-estree';

/**
 * A textlint plugin that reads the prose of TypeScript and JavaScript files: comments and string
 * literals of several words. Each becomes a paragraph; everything else is replaced by spaces, so
 * that positions stay those of the file.
 */

const blank = (text) => text.replace(/[^\n]/g, ' ');
/** Replaces what stands between backticks by one word of the same length: names are not prose. */
const withoutCode = (text) =>
  text.replace(/`[^`]*`/g, (span) => `\`${span.slice(1, -1).replace(/[^\n]/g, 'x')}\``);
/** Replaces the comment's markers (slashes, stars and list dashes) by spaces. */
const withoutMarkers = (text) =>
  text
    .replace(/^\/\*\*?|\*\/$/g, blank)
    .replace(/^\/\//, blank)
    .replace(/^([ \t]*)\*/gm, '$1 ');

const isDirective = (text) => /^\s*(eslint|@ts-|<reference|istanbul|c8|#__PURE__|@__PURE__)/.test(text);

/**
 * Returns the comments; line comments that follow one another without code between them are one.
 */
const commentsOf = (ast, source) => {
  const comments = [];
  for (const { type, range, loc, value } of ast.comments) {
    if (isDirective(value)) continue;
    const last = comments.at(-1);
    const joins =
      type === 'Line' &&
      last?.type === 'Line' &&
      /^\s*$/.test(source.slice(last.end, range[0])) &&
      last.line + 1 === loc.start.line;
    if (joins) Object.assign(last, { end: range[1], line: loc.end.line });
    else
      comments.push({
        type,
        start: range[0],
        end: range[1],
        line: loc.end.line,
        kind: value.startsWith('*') ? 'doc' : 'comment',
      });
  }
  return comments;
};

const proseOf = (node) => {
  if (node.type === 'Literal' && typeof node.value === 'string')
    return { text: node.value, range: node.range };
  if (node.type === 'TemplateElement') return { text: node.value.cooked ?? '', range: node.range };
  return undefined;
};

/** Returns the string literals that hold at least two words. */
const stringsOf = (ast) => {
  const strings = [];
  const visit = (node) => {
    if (Array.isArray(node)) return node.forEach(visit);
    if (!node || typeof node.type !== 'string') return;
    if (/^(Import|ExportAll)/.test(node.type)) return;
    const prose = proseOf(node);
    if (prose && /\p{L}\s+\p{L}/u.test(prose.text))
      strings.push({ start: prose.range[0], end: prose.range[1], kind: 'string' });
    for (const key of Object.keys(node))
      if (!['parent', 'loc', 'range', 'comments', 'tokens'].includes(key)) visit(node[key]);
  };
  visit(ast.body);
  return strings;
};

/** Splits a range of the blanked text where a line is empty or a list item begins. */
const paragraphsOf = (text, { start, end, kind }) => {
  const paragraphs = [];
  let from = null;
  let to = start;
  const flush = () => {
    // A type is not prose.
    if (from !== null && !/^@(typedef|type)\b/.test(text.slice(from)))
      paragraphs.push({ start: from, end: to, kind, opens: paragraphs.length === 0 });
    from = null;
  };
  let offset = start;
  for (const line of text.slice(start, end).split('\n')) {
    const content = line.trim();
    if (content === '' || /^([-*]|\d+\.|@\w+)\s/.test(content)) flush();
    if (content !== '') {
      from ??= offset + line.indexOf(content[0]);
      to = offset + line.trimEnd().length;
    }
    offset += line.length + 1;
  }
  flush();
  return paragraphs;
};

const locator = (text) => {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return (offset) => {
    let [low, high] = [0, starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle] <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - starts[low] };
  };
};

export const preProcess = (source) => {
  const ast = parse(source, {
    comment: true,
    range: true,
    loc: true,
    jsx: false,
    allowInvalidAST: true,
  });
  const pieces = [...commentsOf(ast, source), ...stringsOf(ast)].sort((a, b) => a.start - b.start);
  let text = '';
  for (const piece of pieces) {
    if (piece.start < text.length) continue;
    text += blank(source.slice(text.length, piece.start));
    const raw = source.slice(piece.start, piece.end);
    text +=
      piece.kind === 'string'
        ? raw
        : withoutCode(
            raw
              .split(/(?<=\n)(?=\s*\/\/)/)
              .map((line) => withoutMarkers(line.replace(/^(\s*)\/\//, '$1  ')))
              .join(''),
          );
  }
  text += blank(source.slice(text.length));
  const position = locator(text);
  const node = (type, start, end, extra) => ({
    type,
    raw: text.slice(start, end),
    range: [start, end],
    loc: { start: position(start), end: position(end) },
    ...extra,
  });
  const children = pieces
    .flatMap((piece) => paragraphsOf(text, piece))
    .map(({ start, end, kind, opens }) =>
      node('Paragraph', start, end, {
        kind,
        opens,
        children: [node('Str', start, end, { value: text.slice(start, end) })],
      }),
    );
  return { text, ast: node('Document', 0, text.length, { children }) };
};

export default {
  Processor: class CodeComments {
    availableExtensions() {
      return ['.ts', '.mts', '.mjs', '.cjs', '.js'];
    }
    processor() {
      return {
        preProcess,
        postProcess: (messages, filePath) => ({ messages, filePath: filePath ?? '<code>' }),
      };
    }
  },
};
