/** Limits of a plan; the contract of its events has the same ones. */
export const PLAN_LIMITS = { steps: 200, text: 2_000, body: 20_000 } as const;
/** Steps after which a file is not read on: it is no plan, however many more it has. */
export const MAX_READ_STEPS = 1_000;

export type LineEnding = 'lf' | 'crlf';

/** A step as the file shows it. */
export interface PlanLine {
  readonly stepId: string;
  /** The line after the box. */
  readonly text: string;
  /** Lines from there to the next step, each with a line feed. May be empty. */
  readonly body: string;
  readonly status: PlanStepStatus;
}

export type PlanStepStatus = 'open' | 'started' | 'done' | 'failed';

/** A plan as its file shows it. */
export interface PlanDocument<Line = PlanLine> {
  readonly eol: LineEnding;
  /** Text before the first step: each line with a line feed. */
  readonly head: string;
  readonly steps: readonly Line[];
}

/** A step as a person may have written it: without an id if it is new. */
export interface ParsedStep {
  readonly stepId: string | null;
  readonly text: string;
  readonly body: string;
  readonly isDone: boolean;
}

const STEP_OFFSET = 2;
const BOX = /^(?:[-*+]|\d{1,9}[.)])[ \t]+\[([ xX])\](?=[ \t]|$)/;
const ITEM = /^(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)/;
const FENCE = /^(`{3,}|~{3,})/;
/** Text of the comment at the end of a step's line. */
const STEP_ID = /^(s[1-9][0-9]{0,5})(?:[ \t]+(?:started|failed))?$/;
/** Maximum length of such a comment: none is searched in a longer text. */
const MAX_ID_COMMENT = 200;

/** Context of a line: what the lines before it have opened. */
interface Context {
  /** Column of the content of the open list item; null outside of lists. */
  item: number | null;
  fence: { readonly mark: string; readonly isInItem: boolean } | null;
  isInComment: boolean;
  wasBlank: boolean;
}

const indentOf = (line: string): number => {
  let width = 0;
  for (const char of line) {
    if (char === ' ') width++;
    else if (char === '\t') width += 4 - (width % 4);
    else break;
  }
  return width;
};

/** Returns true for a line of an open code block or comment, and closes what it ends. */
const isInOpenBlock = (at: Context, text: string, indent: number): boolean => {
  if (at.isInComment) {
    at.isInComment = !text.includes('-->');
    return true;
  }
  if (!at.fence) return false;
  // A block of a list item ends with the item.
  if (at.fence.isInItem && indent < (at.item ?? 0) && text !== '') {
    at.fence = null;
    return false;
  }
  const { mark } = at.fence;
  if (
    text.startsWith(mark) &&
    text
      .slice(mark.length)
      .replaceAll(mark[0] ?? '', '')
      .trim() === ''
  )
    at.fence = null;
  return true;
};

/** Returns true for a line that opens a code block or a comment. */
const opensBlock = (at: Context, text: string, indent: number): boolean => {
  const isInItem = at.item !== null && indent >= at.item;
  const mark = indent < 4 || isInItem ? FENCE.exec(text)?.[1] : undefined;
  if (mark !== undefined && !(mark.startsWith('`') && text.slice(mark.length).includes('`'))) {
    if (!isInItem) at.item = null;
    at.fence = { mark, isInItem };
    return true;
  }
  at.isInComment = text.startsWith('<!--') && !text.includes('-->');
  return at.isInComment;
};

interface Box {
  readonly isDone: boolean;
  /** The line after the box. */
  readonly rest: string;
}

const boxOf = (text: string): Box | null => {
  const match = BOX.exec(text);
  return match && { isDone: match[1] !== ' ', rest: text.slice(match[0].length).trim() };
};

/** Returns the check box of a line at the top level, and applies the line to the context. */
const readLine = (at: Context, line: string): Box | null => {
  const indent = indentOf(line);
  const text = line.trim();
  const { wasBlank } = at;
  at.wasBlank = text === '';
  if (isInOpenBlock(at, text, indent) || text === '') return null;
  const isNested = at.item !== null && indent >= at.item;
  const box = !isNested && indent < 4 ? boxOf(text) : null;
  if (box) {
    at.item = STEP_OFFSET;
    return box;
  }
  if (opensBlock(at, text, indent) || isNested) return null;
  const item = indent < 4 ? ITEM.exec(text) : null;
  if (item) at.item = indent + Math.max(STEP_OFFSET, item[0].trimEnd().length + 1);
  // Without a blank line before it, the line continues the paragraph of the item.
  else if (wasBlank || text.startsWith('#')) at.item = null;
  return null;
};

interface Draft {
  readonly stepId: string | null;
  readonly text: string;
  readonly isDone: boolean;
  readonly below: string[];
}

/** Cuts a comment with the id of a step off the end of a text without blanks around it. */
const cutStepId = (text: string): { readonly stepId: string | null; readonly text: string } => {
  const start = text.endsWith('-->') ? text.lastIndexOf('<!--') : -1;
  if (start === -1 || text.length - start > MAX_ID_COMMENT) return { stepId: null, text };
  const stepId = STEP_ID.exec(text.slice(start + 4, -3).trim())?.[1] ?? null;
  return { stepId, text: stepId === null ? text : text.slice(0, start).trim() };
};

const toDraft = ({ isDone, rest }: Box): Draft => ({ ...cutStepId(rest), isDone, below: [] });

/** Each line ends with a line feed, so that an empty line differs from none. */
const joinLines = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');
const splitLines = (text: string): string[] => text.split('\n').slice(0, -1);

const trimEnd = (lines: readonly string[]): string[] => {
  const last = lines.findLastIndex((line) => line.trim() !== '');
  return lines.slice(0, last + 1);
};

/** Returns the line that closes what the last line left open, so that a later step stays one. */
const closing = ({ fence, isInComment }: Context): string[] => {
  if (isInComment) return ['-->'];
  return fence && !fence.isInItem ? [fence.mark] : [];
};

/** Yields the lines of a text, without their ends. */
function* linesOf(text: string): Generator<string, void, undefined> {
  let begin = 0;
  for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', begin)) {
    yield text.slice(begin, text[end - 1] === '\r' ? end - 1 : end);
    begin = end + 1;
  }
  yield text.slice(begin);
}

/**
 * Parses a `.plan.md` file. Steps are check boxes at the top level: boxes of nested lists, code
 * blocks, quotes and comments are text. A box without text is text, too. Reads a file of more than
 * `MAX_READ_STEPS` steps only up to the next one.
 */
export const parsePlan = (file: string): PlanDocument<ParsedStep> => {
  const at: Context = { item: null, fence: null, isInComment: false, wasBlank: false };
  const head: string[] = [];
  const drafts: Draft[] = [];
  let below = head;
  for (const line of linesOf(file.startsWith('\uFEFF') ? file.slice(1) : file)) {
    const box = readLine(at, line);
    const draft = box && toDraft(box);
    if (draft && draft.text !== '') {
      drafts.push(draft);
      below = draft.below;
      if (drafts.length > MAX_READ_STEPS) break;
    } else below.push(line);
  }
  below.length = trimEnd(below).length;
  below.push(...closing(at));
  return {
    eol: file[file.indexOf('\n') - 1] === '\r' ? 'crlf' : 'lf',
    head: joinLines(head),
    steps: drafts.map(({ below: own, ...step }) => ({ ...step, body: joinLines(own) })),
  };
};

const SUFFIX: Readonly<Record<PlanStepStatus, string>> = {
  open: '',
  done: '',
  started: ' started',
  failed: ' failed',
};

const stepLines = ({ stepId, text, body, status }: PlanLine): string[] => {
  const line = `- [${status === 'done' ? 'x' : ' '}] ${text} <!-- ${stepId}${SUFFIX[status]} -->`;
  return [line, ...splitLines(body)];
};

/** Returns the text of a plan's file. `parsePlan` returns the same plan for it. */
export const renderPlan = ({ eol, head, steps }: PlanDocument): string => {
  const end = eol === 'crlf' ? '\r\n' : '\n';
  return trimEnd([...splitLines(head), ...steps.flatMap(stepLines)])
    .map((line) => `${line}${end}`)
    .join('');
};

/** Returns a text in the form of a step's line: one line without an id of its own. */
export const toStepText = (text: string): string => {
  let line = text.replace(/\s+/g, ' ').trim();
  for (let cut = cutStepId(line); cut.stepId !== null; cut = cutStepId(line)) line = cut.text;
  return line.slice(0, PLAN_LIMITS.text).trim();
};
